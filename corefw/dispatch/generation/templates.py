"""What the generator writes, literally; ``tests/golden`` shows it for some ops.

A function has the shape of FORWARD, INPLACE or BACKWARD. The templates above each are what stands in its larger holes.
"""

# -- the function ---------------------------------------------------------------------------------------------------
#: what is not given by position, some of it perhaps under other names
OPTIONS = """
{defaults}
if {given}:
    {taken}
    if {lacking}:
        return respelled(OP, THIS, options, {everything})
    {out}
"""
#: other names, where there is nothing else that is not given by position
ALIASES = """
if {given}:
    return respelled(OP, THIS, dict({aliases}), {everything})
"""
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
    kernel, body, _, _ = table[{dispatch_key_of}]
except (AttributeError, IndexError):
    return BODY({passed})
try:
    if kernel is None:
        return body({passed})
    if grad_mode.recording and ({gradient_wanted}):
        return BODY({passed})
except AttributeError as error:
    return slow_path_body(OP, error, {arguments})
"""

#: a Python number beside the first tensor becomes an operand
NUMBER = """
if {given}{name}.__class__ is not Tensor:
    {name} = operand({name}, dispatch_key)
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
kernel, {dispatch_keys}, array_type, _ = table[dispatch_key]
array = kernel({kernel_arguments})
"""
#: several tensors: the kernel runs if they lie with one dispatch key
CALL_AGREEING = """
if {agree}:
    {kernel_call}
else:
    array, {dispatch_keys}, array_type = mixed(OP, {operands})
"""
#: a sequence of tensors
CALL_SEQUENCE = """
arrays = []
for t in {several}:
    if t.dispatch_key is not dispatch_key:
        array, {dispatch_keys}, array_type = mixed(OP, {operands})
        break
    arrays.append(t.array)
else:
    {kernel_call}
"""

#: the node of a result with a history
RECORD = """
node = NODE()
node.inputs = {inputs}
node.saved = {saved}
node.shape = {shape}
node.dispatch_key = {dispatch_keys}
node.hooks = None
node.sequence = next_sequence()
if recorder is not True:
    recorder(node)
"""

RESULT = """
if array.__class__ is not array_type:
    array = dispatch_key.runtime.wrap(array)
result = new(Tensor)
result.array = array
result.dispatch_key = dispatch_key
result.view_info = None
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
{dispatch_keys} = dispatch_keys
{each}
{nodes}
return tuple_of(RESULT, {results})
"""
RESULT_OF_SEVERAL = """
if {name}_array.__class__ is not array_type:
    {name}_array = key_{i}.runtime.wrap({name}_array)
result_{i} = new(Tensor)
result_{i}.array = {name}_array
result_{i}.dispatch_key = key_{i}
result_{i}.view_info = result_{i}.node = None
result_{i}.version = {name}_version = fresh_version() if inferring else [0]
"""
NODES = """
{histories}
if {any_history} and (recorder := grad_mode.recording):
    {record}
    {each}
"""
NODE_OF_SEVERAL = """
if key_{i}.dtype.category >= 2: result_{i}.node = output_node(node, {i}, {name}_array, key_{i})
"""

#: how a view was taken, so that it can be taken again
LINK = """
record = ViewInfo()
record.base = input if view is None else view.base
record.base_node = record.base.node
record.parent = view
record.function = {function}
record.arguments = {view_arguments}
record.recorded = recorder is not False
"""
VIEW = """
view = input.view_info
{histories}
recorder = grad_mode.recording
{link}
result = new(Tensor)
result.array = array
result.dispatch_key = dispatch_key
result.version = input.version
result.view_info = record
if {any_history} and recorder:
    {record}
    result.node = node
else:
    result.node = None
return result
"""
VIEWS = """
view = input.view_info
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
    result.dispatch_key = dispatch_key
    result.version = input.version
    {link}
    result.view_info = record
    result.node = output_node(node, i, part, dispatch_key) if recording else None
    results.append(result)
return tuple(results)
"""

FORWARD = """
def {name}({signature}):
    try:
        {shortcuts}
        try:
            dispatch_key = {dispatch_key_of}
            {numbers}
            {canonical}
            {call}
        except Exception as error:
            return slow_path(OP, error, {arguments})
        {results}
    except Exception as error:
        hide_internal_frames(error)
        raise
"""

#: a composite without kernels
PLAIN = """
def {name}({signature}):
    try:
        {options}
        return BODY({passed})
    except Exception as error:
        hide_internal_frames(error)
        raise
"""

# -- the in-place form ------------------------------------------------------------------------------------------------
#: a view to be written to must not show an element several times
CHECK_MEMORY = "check_memory({first})"
#: nor lie partly over another operand; one memory has one version
CHECK_OVERLAP = """
if {given}{name}.version is {first}.version and {name} is not {first}:
    check_overlap({first}, {name})
"""
#: a gradient formula that uses the first operand wants it as it was
KEEP_ORIGINAL = """
original = None
if {needed}:
    original = wrap({first}.array, dispatch_key).clone()
    original.node = n0
"""
CALL_INTO = """
inplace_table[dispatch_key]({kernel_arguments}, out={first}.array)
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
            dispatch_key = {first}.dispatch_key
            {numbers}
            {histories}
            recorder = {any_history} and {can_record}grad_mode.recording
            if {first}.view_info is not None:
                {checks}
                recorder = recorder or base_recorded({first}.view_info) and grad_mode.recording
        except Exception as error:
            return slow_path_into(OP, error, {arguments})
        if recorder:
            check_writable({first})
            {keep_original}
        try:
            {canonical}
            {call}
        except Exception as error:
            return slow_path_into(OP, error, {arguments})
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

# -- updates of lists of tensors --------------------------------------------------------------------------------------
UPDATE = """
def {name}({signature}):
    try:
        try:
            dispatch_key = {first}.dispatch_key
            arrays = []
            for t in {several}:
                if t.dispatch_key is not dispatch_key:
                    return by_dispatch_key(OP, {arguments})
                arrays.append(t.array)
            if grad_mode.recording:
                check_unrecorded(OP.name, {changed})
            table[dispatch_key][0]({kernel_arguments})
        except Exception as error:
            return slow_path(OP, error, {arguments})
        for t in {changed}:
            t.version[0] += 1
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
    raise stale(node.name(), {name}.array.shape, {name}.dispatch_key, v{i}, {name}.version[0])
"""
TENSORS_UNCHANGED = """
for t, v in zip({name}, v{i}):
    if t is not None and t.version[0] != v:
        raise stale(node.name(), t.array.shape, t.dispatch_key, v, t.version[0])
"""
#: of a result only the array is saved, so that node and result do not hold each other
OUTPUT_AGAIN = """
{name} = None
if o{i} is not None:
    array, version, count = o{i}
    if version[0] != count:
        raise stale(node.name(), array.shape, {dispatch_key}, count, version[0])
    {name} = new(Tensor)
    {name}.array = array
    {name}.dispatch_key = {dispatch_key}
    {name}.version = version
    {name}.view_info = None
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
