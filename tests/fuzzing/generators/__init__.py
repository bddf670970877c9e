"""What programs are drawn from: one file for each family, each with a function that grows a program."""

from tests.fuzzing.generators.creation import creation
from tests.fuzzing.generators.declared import declared
from tests.fuzzing.generators.indexing import indexing
from tests.fuzzing.generators.layers import layers
from tests.fuzzing.generators.promotion import promotion
from tests.fuzzing.generators.reductions import reductions
from tests.fuzzing.generators.rows import rows
from tests.fuzzing.generators.views import views

#: every family by name
FAMILIES = {f.__name__: f for f in (creation, declared, indexing, layers, promotion, reductions, rows, views)}
