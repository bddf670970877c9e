// Sums and means of losses: a block sums its own, and if there are several, total_loss (losses.cu) sums those of all.

// What a mean divides, and by what. The sums are double, so that their order hardly matters.
struct Total {
    double loss, weight;
};

__device__ inline Total block_total(Total own)
{
    return {combine_block<Add>(own.loss, 0.0), combine_block<Add>(own.weight, 0.0)};
}

// Writes the result of the only block, else the block's share of it. Without a mean the weights do not count.
__device__ inline void sum_losses(Total own, Total *of_blocks, T *result, bool mean)
{
    own = block_total(own);
    if (threadIdx.x)
        return;
    if (gridDim.x > 1)
        of_blocks[blockIdx.x] = own;
    else
        *result = A(mean ? own.loss / own.weight : own.loss);
}
