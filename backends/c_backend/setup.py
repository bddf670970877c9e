"""One extension module for each chosen level, linked from the kernels that building/hooks.py had compiled."""

from pathlib import Path

import compiling
import levels
import toolchain
from setuptools import Extension, setup
from setuptools.command import build_ext


class BuildModules(build_ext.build_ext):
    """setuptools' command, with our linker."""

    def run(self) -> None:
        """Keep the modules of the chosen levels, and build them."""
        wanted = {f"corefw_c._{level}" for level in toolchain.choose()}
        self.extensions = [module for module in self.extensions if module.name in wanted]
        super().run()

    def build_extension(self, ext: Extension) -> None:
        """Link one module to where setuptools wants it."""
        output = Path(self.get_ext_fullpath(ext.name))
        output.parent.mkdir(parents=True, exist_ok=True)
        compiling.Target(ext.name.removeprefix("corefw_c._")).link(output)


setup(
    ext_modules=[Extension(f"corefw_c._{level}", [], py_limited_api=True) for level in levels.LEVELS],
    cmdclass={"build_ext": BuildModules},
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
