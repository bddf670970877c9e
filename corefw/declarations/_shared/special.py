"""What the declarations of special functions share."""

from corefw.dispatch.rules import floating

#: floating results, of all but complex numbers
real = floating.without("complex")
