"""The commands of `corefw`: a file for each, with `add`, which adds its parser, and the function that runs it."""
