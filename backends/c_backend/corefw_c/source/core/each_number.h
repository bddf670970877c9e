/* Includes the file TEMPLATE for each type of numbers: NUMBER, names ending in b8, u8, i8, i16, i32, i64, f32 and f64.
 * SUM and PRODUCT of integers wrap; of bool values they are "or" and "and". */
#define IS_NAN(x) false
#define SUM(a, b) ((a) | (b))
#define PRODUCT(a, b) ((a) & (b))
#define NUMBER uint8_t
#define OF_NUMBER(name) name##_b8
#include TEMPLATE
#undef NUMBER
#undef OF_NUMBER
#undef SUM
#undef PRODUCT
#define SUM(a, b) ((NUMBER)((uint64_t)(a) + (uint64_t)(b)))
#define PRODUCT(a, b) ((NUMBER)((uint64_t)(a) * (uint64_t)(b)))
#define NUMBER uint8_t
#define OF_NUMBER(name) name##_u8
#include TEMPLATE
#undef NUMBER
#undef OF_NUMBER
#define NUMBER int8_t
#define OF_NUMBER(name) name##_i8
#include TEMPLATE
#undef NUMBER
#undef OF_NUMBER
#define NUMBER int16_t
#define OF_NUMBER(name) name##_i16
#include TEMPLATE
#undef NUMBER
#undef OF_NUMBER
#define NUMBER int32_t
#define OF_NUMBER(name) name##_i32
#include TEMPLATE
#undef NUMBER
#undef OF_NUMBER
#define NUMBER int64_t
#define OF_NUMBER(name) name##_i64
#include TEMPLATE
#undef NUMBER
#undef OF_NUMBER
#undef SUM
#undef PRODUCT
#undef IS_NAN
#define IS_NAN(x) ((x) != (x))
#define SUM(a, b) ((a) + (b))
#define PRODUCT(a, b) ((a) * (b))
#define NUMBER float
#define OF_NUMBER(name) name##_f32
#include TEMPLATE
#undef NUMBER
#undef OF_NUMBER
#define NUMBER double
#define OF_NUMBER(name) name##_f64
#include TEMPLATE
#undef NUMBER
#undef OF_NUMBER
#undef SUM
#undef PRODUCT
#undef IS_NAN
#undef TEMPLATE
