/*
 * A file without a name, for data that need not stay in memory: first everything is appended, then
 * any of it is read. It is gone when it is closed or the process ends.
 *
 * One owner.
 */
#ifndef VIGIL_MIRROR_LOAD_SCRATCH_FILE_H
#define VIGIL_MIRROR_LOAD_SCRATCH_FILE_H

#include "base/error.h"
#include "base/slice.h"

struct spool;

/* In this directory, which exists. */
MUST_CHECK
enum status spool_open(const char *directory, struct spool **ret_spool, struct error *error);
void spool_close(struct spool *spool); /* accepts NULL */

/* Bytes that were appended: the place of what is appended next. */
uint64_t spool_bytes(const struct spool *spool);
/* ST_DISK_FULL; ST_IO. */
MUST_CHECK
enum status spool_append(struct spool *spool, struct slice bytes);

/* Ends the appending. ST_DISK_FULL; ST_IO; ST_NOMEM. */
MUST_CHECK
enum status spool_finish(struct spool *spool);
/* The bytes from this place on; valid until the spool is closed. */
const uint8_t *spool_at(const struct spool *spool, uint64_t place);

#endif
