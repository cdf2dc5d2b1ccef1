/*
 * One entry of a recording: a call that changed or synced a file of the data directory. record.c
 * writes them while the server runs, disk.c reads them.
 *
 * Every call takes two tickets from a counter that all threads share: one before it begins and one
 * after it has ended. A power failure at position p is the moment at which all tickets below p have
 * been taken: a call whose end is below p has ended, one whose begin is at or above p has not
 * begun, and any other is under way. The counter is in a file that clients map, too, so that they
 * know the position at which they sent a request and the one at which they had its answer.
 *
 * Entries are written when calls end, and so are not in the order of their begins.
 */
#ifndef VIGIL_TESTS_POWER_ENTRY_H
#define VIGIL_TESTS_POWER_ENTRY_H

#include <stdint.h>

enum entry_kind {
    ENTRY_OPEN = 1, /* text: the path below the data directory; "" is the directory itself */
    ENTRY_WRITE,
    ENTRY_TRUNCATE, /* offset: the new size */
    ENTRY_SYNC,     /* sync of a file or a directory */
    ENTRY_RENAME,   /* text and text_to */
    ENTRY_UNLINK,
    ENTRY_MAKE_DIR,
};

enum {
    ENTRY_MAGIC = 0x77707631,
    ENTRY_ALIGN = 8,
    ENTRY_CREATES = 1,      /* open: with O_CREAT */
    ENTRY_DSYNC = 2,        /* write: through a descriptor with O_DSYNC */
    ENTRY_ZEROS = 4,        /* write: only zeros, which are not stored */
    ENTRY_FAILED = 8,       /* the caller got an error; a write may have been done in part */
    ENTRY_INTERRUPTED = 16, /* … and the error is EINTR */
};

struct entry {
    uint32_t magic;
    uint16_t kind;
    uint16_t flags;
    uint64_t begin, end; /* tickets */
    uint64_t handle;     /* for an open file: the ticket with which its opening began */
    uint64_t offset;     /* offset of a write */
    uint64_t length;     /* for a write: bytes that were written */
    uint32_t text_bytes; /* follow the entry, without a zero at the end … */
    uint32_t text_to_bytes;
    uint64_t data_bytes; /* … and then these, and zeros up to a multiple of ENTRY_ALIGN */
};

static inline uint64_t entry_bytes(const struct entry *entry)
{
    uint64_t bytes = sizeof(*entry) + entry->text_bytes + entry->text_to_bytes + entry->data_bytes;
    return (bytes + ENTRY_ALIGN - 1) / ENTRY_ALIGN * ENTRY_ALIGN;
}

#endif
