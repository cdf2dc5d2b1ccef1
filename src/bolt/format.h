/*
 * The format of a bbolt file, in which etcd keeps everything and which its snapshots are. Plain
 * computation on bytes, none of which is trusted; no state.
 *
 *   page 0, 1     meta: the valid one with the larger txid is used
 *   all others    branch, leaf or freelist, in any order; a page that is too large continues in
 *                 `overflow` pages behind it, which have no head of their own
 *
 *   page          head 16 | element[count] | keys and values, to which the elements' pos points
 *   leaf          element 16: flags, pos, ksize, vsize; then key and value, next to each other
 *   branch        element 16: pos, ksize, pgid; the key is the first one of the page below
 *   bucket        a leaf element with BOLT_LEAF_BUCKET whose value is a bolt_bucket; root 0: the
 *                 bucket's only page, a leaf, follows it in the same value
 *
 * An element's pos counts from that element's own first byte. Numbers are in the machine's byte
 * order: a file from a machine of the other order has a wrong magic. Keys are sorted as bytes.
 */
#ifndef VIGIL_BOLT_FORMAT_H
#define VIGIL_BOLT_FORMAT_H

#include "base/slice.h"
#include "base/status.h"

#define BOLT_MAGIC UINT32_C(0xED0CDAED)
#define BOLT_NO_FREELIST UINT64_MAX /* meta.freelist of a file that keeps none */

enum {
    BOLT_VERSION = 2,
    BOLT_PAGE_BYTES = 4096, /* what we write; a file gives its own in its meta pages */
    BOLT_PAGE_BYTES_MIN =
        1024, /* the smallest that bbolt tries when it looks for the second meta page */
    BOLT_PAGE_BYTES_MAX = 65536,
    BOLT_PAGE_COUNT_MAX = 0xFFFF, /* a freelist with more pages has its count in the first id */
    BOLT_KEY_BYTES_MAX = 32768,
};
#define BOLT_VALUE_BYTES_MAX (((int64_t)1 << 31) - 2)

/* Kinds of pages; exactly one bit is set. */
enum {
    BOLT_BRANCH = 0x01,
    BOLT_LEAF = 0x02,
    BOLT_META = 0x04,
    BOLT_FREELIST = 0x10,
};
enum { BOLT_LEAF_BUCKET = 0x01 }; /* flag of a leaf's element */

struct bolt_page {
    uint64_t id; /* the file's offset is id times the page size */
    uint16_t flags;
    uint16_t count;
    uint32_t overflow;
};

struct bolt_leaf_element {
    uint32_t flags;
    uint32_t pos;
    uint32_t ksize;
    uint32_t vsize;
};

struct bolt_branch_element {
    uint32_t pos;
    uint32_t ksize;
    uint64_t pgid;
};

struct bolt_bucket {
    uint64_t root;
    uint64_t sequence;
};

struct bolt_meta {
    uint32_t magic;
    uint32_t version;
    uint32_t page_bytes;
    uint32_t flags;
    struct bolt_bucket root; /* the bucket of buckets; never inline */
    uint64_t freelist;       /* page id or BOLT_NO_FREELIST */
    uint64_t pages;          /* one past the last page in use: the high water mark */
    uint64_t txid;           /* its lowest bit is the meta page's number */
    uint64_t checksum;       /* FNV-1a of everything before it */
};

enum {
    BOLT_PAGE_HEAD_BYTES = sizeof(struct bolt_page),
    BOLT_ELEMENT_BYTES = sizeof(struct bolt_leaf_element),
    BOLT_BUCKET_BYTES = sizeof(struct bolt_bucket),
};
_Static_assert(sizeof(struct bolt_page) == 16, "as in the file");
_Static_assert(sizeof(struct bolt_leaf_element) == 16, "as in the file");
_Static_assert(sizeof(struct bolt_branch_element) == 16, "as in the file");
_Static_assert(sizeof(struct bolt_bucket) == 16, "as in the file");
_Static_assert(sizeof(struct bolt_meta) == 64, "as in the file");

/* FNV-1a, 64 bits. */
uint64_t bolt_fnv1a(struct slice bytes);

/* Fills magic, version and checksum. */
void bolt_meta_finish(struct bolt_meta *meta);
/* ST_OK: the meta is intact, of the known version, and its page size is valid. ST_WRONG_FORMAT
 * otherwise. The pages it refers to are not checked. */
MUST_CHECK
enum status bolt_meta_check(const struct bolt_meta *meta);

#endif
