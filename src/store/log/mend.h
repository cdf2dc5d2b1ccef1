/*
 * Makes the head of a segment again when it is damaged. The name of the file has its id and its
 * length is the capacity. The salt is in the checksum of every record: running that of the first
 * record backwards gives it. Only the first record is used for that, because it begins at a fixed
 * place; anywhere else a value that a client has stored could pretend to be a record.
 */
#ifndef VIGIL_STORE_LOG_MEND_H
#define VIGIL_STORE_LOG_MEND_H

#include "store/log/format.h"

/*
 * The head of a segment with these bytes, which are all of its file. False: the head is intact.
 * When nothing verifies the salt, no record of the segment can be read, but single changes can.
 */
bool segment_head_mend(struct slice file, uint64_t id, struct segment_head *ret_head);

/*
 * The salt with which the record at the start of `bytes` was written. False if it is no record, or
 * is damaged, too.
 */
bool record_find_salt(struct slice bytes, uint32_t *ret_salt);

#endif
