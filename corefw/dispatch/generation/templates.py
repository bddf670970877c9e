"""What the generator writes, literally; ``tests/golden`` shows it for some ops.

A function has the shape of FORWARD, INPLACE or BACKWARD. The templates above each are what stands in its larger holes.
"""

# -- the function ---------------------------------------------------------------------------------------------------
#: out=: the ordinary call, and a copy into the given tensor
OUT = """
if out is not None:
    return write_out(OP, out, {passed})
"""
#: the argument `inplace` of activations
INPLACE_WANTED = """
if inplace:
    return INPLACE({passed})
"""
#: keyword options that kernels do not know: the body states what they mean
REWRITE = """
if {changed}:
    return {body}({passed})
"""
#: a composite without a gradient runs its body where no kernel is registered or a gradient is wanted
BODY_FIRST = """
try:
    kernel, body, _, _ = table[{place_of}]
except (AttributeError, IndexError):
    return BODY({passed})
try:
    if kernel is None:
        return body({passed})
    if grad_mode.recording and ({gradient_wanted}):
        return BODY({passed})
except AttributeError as error:
    return recover_body(OP, error, {arguments})
"""

#: a Python number beside the first tensor becomes an operand
NUMBER = """
if {given}{name}.__class__ is not Tensor:
    {name} = operand({name}, place)
"""
DIM = """
if {given}({name}.__class__ is not int or not 0 <= {name} < {reference}.array.ndim):
    {name} = canonical_dim({name}, {reference}.array.ndim)
"""
DIMS = """
if {name}.__class__ is int and 0 <= {name} < {reference}.array.ndim:
    {name} = ({name},)
elif {name} is not None:
    {name} = canonical_dims({name}, {reference}.array.ndim){none}
"""
SIZES = """
{name} = as_shape({name})
"""

KERNEL_CALL = """
kernel, {places}, array_type, _ = table[place]
array = kernel({kernel_arguments})
"""
#: several tensors: the kernel runs if they lie at one place
CALL_AGREEING = """
if {agree}:
    {kernel_call}
else:
    array, {places}, array_type = mixed(OP, {operands})
"""
#: a sequence of tensors
CALL_SEQUENCE = """
arrays = []
for t in {several}:
    if t.place is not place:
        array, {places}, array_type = mixed(OP, {operands})
        break
    arrays.append(t.array)
else:
    {kernel_call}
"""

#: the node of a result with a history
RECORD = """
node = new(NODE)
node.inputs = {inputs}
node.saved = {saved}
node.shape = {shape}
node.place = {places}
node.hooks = None
node.sequence = next_sequence()
if recorder is not True:
    recorder(node)
"""

RESULT = """
if array.__class__ is not array_type:
    array = place.runtime.wrap(array)
result = new(Tensor)
result.array = array
result.place = place
result.origin = None
result.version = version = fresh_version() if inferring else [0]
{node}
return result
"""
NODE = """
{histories}
if {any_history} and {can_record}(recorder := grad_mode.recording):
    {record}
    result.node = node
else:
    result.node = None
"""
NO_NODE = """
result.node = None
"""

RESULTS = """
{arrays} = array
{places} = places
{each}
{nodes}
return tuple_of(RESULT, {results})
"""
RESULT_OF_SEVERAL = """
if {name}_array.__class__ is not array_type:
    {name}_array = place_{i}.runtime.wrap({name}_array)
result_{i} = new(Tensor)
result_{i}.array = {name}_array
result_{i}.place = place_{i}
result_{i}.origin = result_{i}.node = None
result_{i}.version = {name}_version = fresh_version() if inferring else [0]
"""
NODES = """
{histories}
if {any_history} and (recorder := grad_mode.recording):
    {record}
    {each}
"""
NODE_OF_SEVERAL = """
if place_{i}.dtype.category >= 2: result_{i}.node = output_node(node, {i}, {name}_array, place_{i})
"""

#: how a view was taken, so that it can be taken again
LINK = """
record = new(View)
record.base = input if view is None else view.base
record.base_node = record.base.node
record.parent = view
record.function = {function}
record.arguments = {view_arguments}
record.recorded = recorder is not False
"""
VIEW = """
view = input.origin
{histories}
recorder = grad_mode.recording
{link}
result = new(Tensor)
result.array = array
result.place = place
result.version = input.version
result.origin = record
if {any_history} and recorder:
    {record}
    result.node = node
else:
    result.node = None
return result
"""
VIEWS = """
view = input.origin
{histories}
recorder = grad_mode.recording
recording = n0 is not None and recorder
if recording:
    {record}
    node.outputs = len(array)
results = []
for i, part in enumerate(array):
    result = new(Tensor)
    result.array = part
    result.place = place
    result.version = input.version
    {link}
    result.origin = record
    result.node = output_node(node, i, part, place) if recording else None
    results.append(result)
return tuple(results)
"""

FORWARD = """
def {name}({signature}):
    try:
        {shortcuts}
        try:
            place = {place_of}
            {numbers}
            {canonical}
            {call}
        except Exception as error:
            return recover(OP, error, {arguments})
        {results}
    except Exception as error:
        hide_internal_frames(error)
        raise
"""

# -- the in-place form ------------------------------------------------------------------------------------------------
#: a view to be written to must not lie partly over another operand; one memory has one version
CHECK_OVERLAP = """
if {given}{name}.version is {first}.version and {name} is not {first}:
    check_overlap({first}, {name})
"""
#: a gradient formula that uses the first operand wants it as it was
KEEP_ORIGINAL = """
original = None
if {needed}:
    original = {first}.detach().clone()
    original.node = n0
"""
CALL_INTO = """
inplace_table[place]({first}.array, {kernel_arguments})
"""
CALL_INTO_AGREEING = """
if {agree}:
    {call_into}
else:
    mixed_into(OP, {operands})
"""

INPLACE = """
def {name}_({signature}):
    try:
        {rewrite}
        try:
            place = {first}.place
            {numbers}
            {histories}
            recorder = {any_history} and {can_record}grad_mode.recording
            if {first}.origin is not None:
                check_memory({first})
                {check_overlaps}
                recorder = recorder or base_recorded({first}.origin) and grad_mode.recording
        except Exception as error:
            return recover_into(OP, error, {arguments})
        if recorder:
            check_writable({first})
            {keep_original}
        try:
            {canonical}
            {call}
        except Exception as error:
            return recover_into(OP, error, {arguments})
        {first}.version[0] += 1
        if recorder:
            array = {first}.array
            version = {first}.version
            {record}
            rebase({first}, node)
        return {first}
    except Exception as error:
        hide_internal_frames(error)
        raise
"""

# -- the node's backward ----------------------------------------------------------------------------------------------
UNPACK = """
{names} = saved
"""
TENSOR_UNCHANGED = """
if {name} is not None and {name}.version[0] != v{i}:
    raise stale(node.name(), {name}.array.shape, {name}.place, v{i}, {name}.version[0])
"""
TENSORS_UNCHANGED = """
for t, v in zip({name}, v{i}):
    if t is not None and t.version[0] != v:
        raise stale(node.name(), t.array.shape, t.place, v, t.version[0])
"""
#: of a result only the array is saved, so that node and result do not hold each other
OUTPUT_AGAIN = """
{name} = None
if o{i} is not None:
    array, version, count = o{i}
    if version[0] != count:
        raise stale(node.name(), array.shape, {place}, count, version[0])
    {name} = new(Tensor)
    {name}.array = array
    {name}.place = {place}
    {name}.version = version
    {name}.origin = None
    {name}.node = {node}
"""
GRADIENTS_OF_OUTPUTS = """
{names} = grad
grad = {first}
"""
#: a formula for several inputs
FORMULA_OF_SEVERAL = """
needs = {needs}
{results} = {formula} if {wanted} else {nothing}
"""

BACKWARD = """
def backward(node, grad):
    try:
        saved = node.saved
        if saved is None:
            raise freed(node)
        {unpack}
        {unchanged}
        {gradients_of_outputs}
        {formulas}
        return {gradients}
    except Exception as error:
        hide_internal_frames(error)
        raise
"""
NO_BACKWARD = """
def backward(node, grad):
    return (None,)
"""
