/*
 * Makes the head of a segment again when it is damaged and has no twin. The name of the file has
 * its id and its length is the capacity. The salt is in the checksum of every record: running that
 * of the first record backwards gives it. Only the first record is used for that, because it begins
 * at a fixed place; anywhere else a value that a client has stored could pretend to be a record.
 */
#ifndef VIGIL_STORE_LOG_MEND_H
#define VIGIL_STORE_LOG_MEND_H

#include "store/log/format.h"

/* GUESSED: nothing verifies the salt, so no record can be read, but single changes can. */
enum segment_head_found { SEGMENT_HEAD_INTACT, SEGMENT_HEAD_MENDED, SEGMENT_HEAD_GUESSED };
/* The head of a segment with these bytes, which are all of its file. */
enum segment_head_found segment_head_mend(struct slice file, uint64_t id,
                                          struct segment_head *ret_head, bool *ret_has_twin);

/* Whether one of them is the other with some damage. Bytes of records do not resemble a head. */
bool segment_heads_resemble(const struct segment_head *a, const struct segment_head *b);

/*
 * The salt with which the record at the start of `bytes` was written. False if it is not a record,
 * or is damaged, too; except that damage in the first byte of its body gives a wrong salt, so
 * another record must confirm it.
 */
bool record_find_salt(struct slice bytes, uint32_t *ret_salt);

#endif
