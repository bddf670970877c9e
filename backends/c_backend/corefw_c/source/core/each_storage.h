/* Includes the file TEMPLATE for each type of elements in memory, ITEM: with REAL as what they are computed in, LOAD and STORE
 * for a vector of REAL, WIDE and NARROW for one (storage.h), and names that end in _f32, _f64, _bf16 or _f16. */
#define REAL float
#define OF_REAL(name) name##_f32

#define ITEM float
#define OF_ITEM(name) name##_f32
#define LOAD(from) (*(const unaligned_floats *)(from))
#define STORE(x, to) (*(unaligned_floats *)(to) = (x))
#define WIDE(item) (item)
#define NARROW(real) (real)
#include TEMPLATE
#undef ITEM
#undef OF_ITEM
#undef LOAD
#undef STORE
#undef WIDE
#undef NARROW

#define ITEM uint16_t
#define OF_ITEM(name) name##_bf16
#define LOAD load_bf16
#define STORE store_bf16
#define WIDE float_of_bfloat16
#define NARROW bfloat16_bits
#include TEMPLATE
#undef OF_ITEM
#undef LOAD
#undef STORE
#undef WIDE
#undef NARROW

#define OF_ITEM(name) name##_f16
#define LOAD load_f16
#define STORE store_f16
#define WIDE float_of_float16
#define NARROW float16_bits
#include TEMPLATE
#undef ITEM
#undef OF_ITEM
#undef LOAD
#undef STORE
#undef WIDE
#undef NARROW

#undef REAL
#undef OF_REAL
#define REAL double
#define OF_REAL(name) name##_f64

#define ITEM double
#define OF_ITEM(name) name##_f64
#define LOAD(from) (*(const unaligned_doubles *)(from))
#define STORE(x, to) (*(unaligned_doubles *)(to) = (x))
#define WIDE(item) (item)
#define NARROW(real) (real)
#include TEMPLATE
#undef ITEM
#undef OF_ITEM
#undef LOAD
#undef STORE
#undef WIDE
#undef NARROW

#undef REAL
#undef OF_REAL
#undef TEMPLATE
