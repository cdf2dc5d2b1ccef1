/* The log line about the space quota at the start, in etcd's words. */
#ifndef VIGIL_CMD_SERVE_ANNOUNCE_QUOTA_NOTICE_H
#define VIGIL_CMD_SERVE_ANNOUNCE_QUOTA_NOTICE_H

#include <stdint.h>

/* As given by --quota-backend-bytes: 0 is the default, negative is off. */
void quota_notice_log(int64_t quota_bytes);

/* As people read it: "2.1 GB", in powers of a thousand; at most 16 bytes with the end. */
enum { BYTES_TEXT_BYTES = 16 };
void bytes_format(uint64_t bytes, char text[BYTES_TEXT_BYTES]);

#endif
