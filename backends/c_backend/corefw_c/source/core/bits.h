/* The bits of a floating number, and the number that bits stand for. */
#ifndef COREFW_BITS_H
#define COREFW_BITS_H

#include <stdint.h>

union bits32 {
    uint32_t bits;
    float number;
};
union bits64 {
    uint64_t bits;
    double number;
};

static inline uint32_t bits_f32(float x) { return (union bits32){.number = x}.bits; }
static inline uint64_t bits_f64(double x) { return (union bits64){.number = x}.bits; }
static inline float from_bits_f32(uint32_t bits) { return (union bits32){.bits = bits}.number; }
static inline double from_bits_f64(uint64_t bits) { return (union bits64){.bits = bits}.number; }

#endif
