/* core/each_storage.h */
#include "core/each_storage.h"
