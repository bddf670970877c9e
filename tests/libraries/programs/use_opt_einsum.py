"""Contractions by their best path, with gradients, and an expression with constants."""

import opt_einsum
from common import numbers, report

a, b, c = (numbers(3, 4, seed=1).requires_grad_(), numbers(4, 5, seed=2), numbers(5, 3, seed=3))
out = opt_einsum.contract("ij,jk,kl->il", a, b, c)
out.pow(2).sum().backward()
expression = opt_einsum.contract_expression("ij,jk->ik", a.detach(), (4, 5), constants=[0])
report(out=out, gradient=a.grad, expression=expression(b), path=str(opt_einsum.contract_path("ij,jk,kl->", a, b, c)[0]))
