// Element types by their names in corefw, the half types as storage, and the type that each is computed in.

typedef signed char int8;
typedef unsigned char uint8;
typedef short int16;
typedef unsigned short uint16;
typedef int int32;
typedef unsigned int uint32;
typedef long long int64;
typedef unsigned long long uint64;
typedef float float32;
typedef double float64;

#ifndef EMULATED
#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fffffff)
#endif

// Elements that are only moved, by their size.
typedef uint8 bits8;
typedef uint16 bits16;
typedef uint32 bits32;
typedef uint64 bits64;
struct alignas(16) bits128 {
    uint64 low, high;
};

// A half type holds bits; arithmetic happens in float32.
struct float16 {
    uint16 bits;

    float16() = default;

    __device__ float16(float value)
    {
#ifdef EMULATED
        _Float16 rounded = value;
        __builtin_memcpy(&bits, &rounded, 2);
#else
        asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
#endif
    }

    __device__ operator float() const
    {
#ifdef EMULATED
        _Float16 value;
        __builtin_memcpy(&value, &bits, 2);
        return value;
#else
        float value;
        asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
        return value;
#endif
    }
};

struct bfloat16 {
    uint16 bits;

    bfloat16() = default;

    // Rounds to nearest, ties to even.
    __device__ bfloat16(float value)
    {
        uint32 wide = __float_as_uint(value);
        bits = value != value ? 0x7fc0 | (wide >> 16 & 0x8000) : (wide + 0x7fff + (wide >> 16 & 1)) >> 16;
    }

    __device__ operator float() const
    {
        return __uint_as_float((uint32)bits << 16);
    }
};

// The type that elements of a type are computed in.
template <class Stored> struct Compute {
    typedef Stored type;
};
template <> struct Compute<float16> {
    typedef float type;
};
template <> struct Compute<bfloat16> {
    typedef float type;
};

// The type that sums of elements are held in: that of computation for floating numbers, 64 bits for integers.
template <class Stored> struct Sum {
    typedef typename Compute<Stored>::type type;
};
template <> struct Sum<bool> {
    typedef int64 type;
};
template <> struct Sum<int8> {
    typedef int64 type;
};
template <> struct Sum<uint8> {
    typedef int64 type;
};
template <> struct Sum<int16> {
    typedef int64 type;
};
template <> struct Sum<uint16> {
    typedef int64 type;
};
template <> struct Sum<int32> {
    typedef int64 type;
};
template <> struct Sum<uint32> {
    typedef int64 type;
};

// Shared memory of the size that the launch says.
#ifdef EMULATED
#define DYNAMIC_SHARED(Type, name) Type *name = (Type *)emulator::dynamic
#else
extern __shared__ int4 dynamic_shared[];
#define DYNAMIC_SHARED(Type, name) Type *name = (Type *)dynamic_shared
#endif
