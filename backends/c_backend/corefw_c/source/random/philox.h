/* The random words of docs/random.md. */
#ifndef COREFW_PHILOX_H
#define COREFW_PHILOX_H

#include <stdint.h>
#include <sys/types.h>

enum { PHILOX_GROUP = 8 }; /* blocks are made in such groups: room is needed for whole ones */

/* words[2 i] and words[2 i + 1]: the two long words of block number block + i of the stream of `seed`, 0 <= i < count. */
void philox(uint64_t seed, uint64_t block, ssize_t count, uint64_t *words);

#endif
