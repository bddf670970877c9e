"""`corefw advise`: the kernels that a device lacks, by the time that a program lost for want of them."""

PROGRAM = """
import sys
import torch
x = torch.ones(1000, requires_grad=True)
assert x.device.type == "bare" and sys.argv[1:] == ["--rounds", "3"]
for _ in range(3):
    (x * x).sum()
"""

ADVISE = """
    import sys
    from corefw.cli import main
    sys.exit(main(["advise", "--device", "{device}", {script!r}, "--rounds", "3"]))
"""


def test_missing_kernels_are_ranked(beside_plugins, tmp_path):
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    lines = beside_plugins(ADVISE.format(device="bare", script=str(script)), "bare.bare")
    assert lines[0].startswith("bare: ") and lines[0].endswith("calls")
    assert lines[1] == "missing kernels, computed elsewhere and copied back:"
    assert lines[2].split("%")[1].split() == ["3", "calls", "mul(input:", "array,", "other:", "array)", "->", "array"]
    assert lines[3].startswith("compositions, which one kernel could compute")


def test_a_device_that_lacks_nothing_is_told_so(beside_plugins, tmp_path):
    script = tmp_path / "program.py"
    script.write_text("import torch\ntorch.ones(2) * 2\n")
    lines = beside_plugins(ADVISE.format(device="acme", script=str(script)), "acme.acme")
    assert lines[1:] == [
        "missing kernels, computed elsewhere and copied back: none",
        "compositions, which one kernel could compute: none",
    ]
