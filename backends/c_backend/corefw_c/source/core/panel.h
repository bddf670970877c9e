/* Products whose right factor is a panel a few vectors wide, and transposition: what attention and recurrences are made
 * of. */
#ifndef COREFW_PANEL_H
#define COREFW_PANEL_H

#include "gemm/gemm_transpose.h"

#include <stdbool.h>
#include <string.h>
#include <sys/types.h>

/* Rows of the left factor that meet two vectors of the right one at once: more need more registers than there are. */
#if defined(__AVX512F__) || defined(__aarch64__)
#define PANEL_ROWS 8
#else
#define PANEL_ROWS 4
#endif

#define TEMPLATE "core/panel.inc"
#include "core/each_real.h"

#endif
