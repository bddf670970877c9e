/* Includes the file TEMPLATE for each size of elements: SIZE in bytes, names ending in it (strided.h has the types). */
#define SIZE 1
#define OF_SIZE(name) name##_1
#include TEMPLATE
#undef SIZE
#undef OF_SIZE
#define SIZE 2
#define OF_SIZE(name) name##_2
#include TEMPLATE
#undef SIZE
#undef OF_SIZE
#define SIZE 4
#define OF_SIZE(name) name##_4
#include TEMPLATE
#undef SIZE
#undef OF_SIZE
#define SIZE 8
#define OF_SIZE(name) name##_8
#include TEMPLATE
#undef SIZE
#undef OF_SIZE
#define SIZE 16
#define OF_SIZE(name) name##_16
#include TEMPLATE
#undef SIZE
#undef OF_SIZE
#undef TEMPLATE
