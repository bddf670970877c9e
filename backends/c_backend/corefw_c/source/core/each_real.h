/* Includes the file TEMPLATE twice: with REAL as float and names ending in _f32, and with double and _f64. */
#define REAL float
#define OF_REAL(name) name##_f32
#include TEMPLATE
#undef REAL
#undef OF_REAL
#define REAL double
#define OF_REAL(name) name##_f64
#include TEMPLATE
#undef REAL
#undef OF_REAL
#undef TEMPLATE
