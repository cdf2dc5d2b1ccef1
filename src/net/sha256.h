/* SHA-256, which etcd appends to every snapshot that it saves. One owner, one thread at a time. */
#ifndef VIGIL_NET_SHA256_H
#define VIGIL_NET_SHA256_H

#include "base/slice.h"
#include "base/status.h"

enum { SHA256_BYTES = 32 };

struct sha256;

/* NULL: no memory. */
struct sha256 *sha256_new(void);
void sha256_free(struct sha256 *sum);
DEFINE_CLEANUP(struct sha256 *, sha256_free)

void sha256_add(struct sha256 *sum, struct slice bytes);
/* The digest of everything added. Nothing may be added afterwards. ST_NOMEM. */
MUST_CHECK
enum status sha256_finish(struct sha256 *sum, uint8_t ret_digest[SHA256_BYTES]);

#endif
