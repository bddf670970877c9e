/* Includes the file TEMPLATE for each type of elements in memory, ITEM: with REAL as what they are computed in, LOAD and WIDE
 * as what makes a vector of REAL, or one, of them, and names that end in _f32, _f64, _bf16 or _f16. */
#define REAL float
#define OF_REAL(name) name##_f32

#define ITEM float
#define OF_ITEM(name) name##_f32
#define LOAD(from) (*(const unaligned_vector_f32 *)(from))
#define WIDE(item) (item)
#include TEMPLATE
#undef ITEM
#undef OF_ITEM
#undef LOAD
#undef WIDE

#define ITEM uint16_t
#define OF_ITEM(name) name##_bf16
#define LOAD load_bf16
#define WIDE float_of_bfloat16
#include TEMPLATE
#undef OF_ITEM
#undef LOAD
#undef WIDE

#define OF_ITEM(name) name##_f16
#define LOAD load_f16
#define WIDE float_of_float16
#include TEMPLATE
#undef ITEM
#undef OF_ITEM
#undef LOAD
#undef WIDE

#undef REAL
#undef OF_REAL
#define REAL double
#define OF_REAL(name) name##_f64

#define ITEM double
#define OF_ITEM(name) name##_f64
#define LOAD(from) (*(const unaligned_vector_f64 *)(from))
#define WIDE(item) (item)
#include TEMPLATE
#undef ITEM
#undef OF_ITEM
#undef LOAD
#undef WIDE

#undef REAL
#undef OF_REAL
#undef TEMPLATE
