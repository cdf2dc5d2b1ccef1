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

struct scratch_file;

/* In this directory, which exists. */
MUST_CHECK
enum status scratch_file_open(const char *directory, struct scratch_file **ret_file,
                              struct error *error);
void scratch_file_close(struct scratch_file *file); /* accepts NULL */

/* Bytes that were appended: the place of what is appended next. */
uint64_t scratch_file_bytes(const struct scratch_file *file);
/* ST_DISK_FULL; ST_IO. */
MUST_CHECK
enum status scratch_file_append(struct scratch_file *file, struct slice bytes);

/* Ends the appending. ST_DISK_FULL; ST_IO; ST_NOMEM. */
MUST_CHECK
enum status scratch_file_finish(struct scratch_file *file);
/* The bytes from this place on; valid until the file is closed. */
const uint8_t *scratch_file_at(const struct scratch_file *file, uint64_t place);

#endif
