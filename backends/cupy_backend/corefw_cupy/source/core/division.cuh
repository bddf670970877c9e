// Division by numbers that are known at the launch (division.py): for 32-bit numbers a multiplication and a shift, after
// T. Granlund and P. Montgomery, "Division by invariant integers using multiplication" (1994).

#ifndef SIZE // of positions
#define SIZE int32
#endif

template <class Size> struct Divisor {
    Size value;

    __device__ Size quotient(Size number) const { return number / value; }
};

template <> struct Divisor<int32> {
    int32 value;
    uint32 multiplier, shift;

    // Of a number that is not negative.
    __device__ int32 quotient(int32 number) const { return (__umulhi(number, multiplier) + (uint32)number) >> shift; }
};

// Takes the position along the innermost dimension off a position, which is left with the dimensions around it.
template <class Size> __device__ Size take_innermost(Size &position, const Divisor<Size> &size)
{
    Size outer = size.quotient(position), along = position - outer * size.value;
    position = outer;
    return along;
}
