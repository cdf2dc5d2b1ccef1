/* SHA-1, for names only: etcd derives its member and cluster ids with it. Nothing depends on its
 * strength. */
#ifndef VIGIL_BASE_SHA1_H
#define VIGIL_BASE_SHA1_H

#include "base/slice.h"

enum { SHA1_BYTES = 20 };

void sha1(struct slice bytes, uint8_t ret_digest[SHA1_BYTES]);

#endif
