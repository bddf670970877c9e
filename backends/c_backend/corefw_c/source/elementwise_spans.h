/* Makes of the lines of elementwise_loops.inc first functions, then rows of the table of loops. A file of loops defines
 * `LOOPS_<suffix>` for the element types that it has, and includes this once, before its array of rows. */
#include "elementwise.h"
#include "mathematics.h"

#define OPERANDS_1(T) const T *a = (const T *)in[0]
#define OPERANDS_2(T) OPERANDS_1(T), *b = (const T *)in[1]
#define OPERANDS_3(T) OPERANDS_2(T), *c = (const T *)in[2]
#define OPERANDS_4(T) OPERANDS_3(T), *d = (const T *)in[3]
#define OPERANDS_5(T) OPERANDS_4(T), *e = (const T *)in[4]
#define ELEMENTS_1 a[i]
#define ELEMENTS_2 a[i], b[i]
#define ELEMENTS_3 a[i], b[i], c[i]
#define ELEMENTS_4 a[i], b[i], c[i], d[i]
#define ELEMENTS_5 a[i], b[i], c[i], d[i], e[i]

/* one_<name> computes an element, span_<name> n of them; they may replace an input. */
#define LOOP(inputs, name, T, R, parameters, ...) \
    static inline __attribute__((always_inline)) R one_##name parameters { __VA_ARGS__; } \
    static void span_##name(intptr_t n, char *const *in, char *out) { \
        OPERANDS_##inputs(T); \
        R *results = (R *)out; \
        INDEPENDENT for (intptr_t i = 0; i < n; i++) results[i] = one_##name(ELEMENTS_##inputs); \
    }

/* The same in blocks: one that holds an element beyond what one_<name> can do is computed by exact_one_<name>. */
#define LIMITED(inputs, name, T, R, parameters, beyond, exact, ...) \
    static inline __attribute__((always_inline)) R one_##name parameters { __VA_ARGS__; } \
    static inline R exact_one_##name parameters { exact; } \
    static inline __attribute__((always_inline)) int beyond_##name parameters { return beyond; } \
    static void span_##name(intptr_t n, char *const *in, char *out) { \
        OPERANDS_##inputs(T); \
        R *results = (R *)out; \
        for (intptr_t start = 0; start < n; start += 256) { \
            intptr_t end = start + 256 < n ? start + 256 : n; \
            int any = 0; \
            for (intptr_t i = start; i < end; i++) any |= beyond_##name(ELEMENTS_##inputs); \
            if (any) { \
                for (intptr_t i = start; i < end; i++) results[i] = exact_one_##name(ELEMENTS_##inputs); \
            } else { \
                INDEPENDENT for (intptr_t i = start; i < end; i++) results[i] = one_##name(ELEMENTS_##inputs); \
            } \
        } \
    }

#define LOOP_1(dtypes, name, suffix, T, R, cost, ...) LOOP(1, name##_##suffix, T, R, __VA_ARGS__)
#define LOOP_2(dtypes, name, suffix, T, R, cost, ...) LOOP(2, name##_##suffix, T, R, __VA_ARGS__)
#define LOOP_3(dtypes, name, suffix, T, R, cost, ...) LOOP(3, name##_##suffix, T, R, __VA_ARGS__)
#define LOOP_4(dtypes, name, suffix, T, R, cost, ...) LOOP(4, name##_##suffix, T, R, __VA_ARGS__)
#define LOOP_5(dtypes, name, suffix, T, R, cost, ...) LOOP(5, name##_##suffix, T, R, __VA_ARGS__)
#define LIMITED_1(dtypes, name, suffix, T, R, cost, ...) LIMITED(1, name##_##suffix, T, R, __VA_ARGS__)
#define LIMITED_2(dtypes, name, suffix, T, R, cost, ...) LIMITED(2, name##_##suffix, T, R, __VA_ARGS__)
#include "elementwise_loops.inc"
#undef LOOP_1
#undef LOOP_2
#undef LOOP_3
#undef LOOP_4
#undef LOOP_5
#undef LIMITED_1
#undef LIMITED_2

/* -- rows: for each line one per dtype that the loop serves; only the result of a `truth` is of another dtype -- */
#define RESULT_truth(dtype) BOOL
#define RESULT_float(dtype) dtype
#define RESULT_double(dtype) dtype
#define RESULT_int8_t(dtype) dtype
#define RESULT_int16_t(dtype) dtype
#define RESULT_int32_t(dtype) dtype
#define RESULT_int64_t(dtype) dtype
#define RESULT_uint8_t(dtype) dtype
#define RESULT_uint16_t(dtype) dtype
#define RESULT_uint32_t(dtype) dtype
#define RESULT_uint64_t(dtype) dtype
#define ROW(D, name, suffix, inputs, R, cost) {#name, inputs, cost, {D, D, D, D, D, RESULT_##R(D)}, span_##name##_##suffix},

#define FLOATS(...) ROW(FLOAT32, __VA_ARGS__) ROW(FLOAT16, __VA_ARGS__) ROW(BFLOAT16, __VA_ARGS__)
#define DOUBLE(...) ROW(FLOAT64, __VA_ARGS__)
#define TRUTHS(...) ROW(BOOL, __VA_ARGS__)
#define SIGNED8(...) ROW(INT8, __VA_ARGS__)
#define SIGNED16(...) ROW(INT16, __VA_ARGS__)
#define SIGNED32(...) ROW(INT32, __VA_ARGS__)
#define SIGNED64(...) ROW(INT64, __VA_ARGS__)
#define UNSIGNED8(...) ROW(UINT8, __VA_ARGS__)
#define UNSIGNED16(...) ROW(UINT16, __VA_ARGS__)
#define UNSIGNED32(...) ROW(UINT32, __VA_ARGS__)
#define UNSIGNED64(...) ROW(UINT64, __VA_ARGS__)
#define INTEGERS8(...) SIGNED8(__VA_ARGS__) UNSIGNED8(__VA_ARGS__)
#define INTEGERS16(...) SIGNED16(__VA_ARGS__) UNSIGNED16(__VA_ARGS__)
#define INTEGERS32(...) SIGNED32(__VA_ARGS__) UNSIGNED32(__VA_ARGS__)
#define INTEGERS64(...) SIGNED64(__VA_ARGS__) UNSIGNED64(__VA_ARGS__)
#define LOOP_1(dtypes, name, suffix, T, R, cost, ...) dtypes(name, suffix, 1, R, cost)
#define LOOP_2(dtypes, name, suffix, T, R, cost, ...) dtypes(name, suffix, 2, R, cost)
#define LOOP_3(dtypes, name, suffix, T, R, cost, ...) dtypes(name, suffix, 3, R, cost)
#define LOOP_4(dtypes, name, suffix, T, R, cost, ...) dtypes(name, suffix, 4, R, cost)
#define LOOP_5(dtypes, name, suffix, T, R, cost, ...) dtypes(name, suffix, 5, R, cost)
#define LIMITED_1 LOOP_1
#define LIMITED_2 LOOP_2
