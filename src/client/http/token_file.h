/*
 * A token in a file that others replace before it expires, as the kubelet does for a pod. It is
 * read again at most every 50 seconds, when it is needed: client-go takes it for valid for a minute
 * after it was read, less 10 seconds. While the file cannot be read or is empty, the last token is
 * used.
 *
 * Owned by the credentials of a client, or by what calls a webhook; its loop's thread.
 */
#ifndef VIGIL_CLIENT_HTTP_TOKEN_FILE_H
#define VIGIL_CLIENT_HTTP_TOKEN_FILE_H

#include "base/buf.h"
#include "base/clock.h"
#include "base/error.h"

enum { TOKEN_FILE_BYTES_MAX = 64 << 10 };
#define TOKEN_FILE_VALID_NS (50 * NS_PER_S)
/* At least this long passes between two attempts to read it. */
#define TOKEN_FILE_PAUSE_NS (1 * NS_PER_S)

struct token_file {
    const char *path; /* borrowed */
    struct buf token; /* without white space around it; never empty */
    int64_t read_ns;  /* the last attempt */
    int64_t due_ns;   /* when the next one is due */
};

/* Reads the file; if that fails, the first token is used, which may be NULL. The error says why
 * there is none: ST_NOT_FOUND, ST_IO, ST_INVALID, ST_LIMIT, ST_MALFORMED, ST_NOMEM. */
MUST_CHECK
enum status token_file_init(struct token_file *file, const char *path, const char *first,
                            int64_t now_ns, struct error *error);
void token_file_fini(struct token_file *file); /* accepts a zeroed one */

/* Reads the file if that is due. True: the token has changed. */
bool token_file_refresh(struct token_file *file, int64_t now_ns);
/* The server refused the token: the file is read again at the next opportunity. */
void token_file_expire(struct token_file *file);

#endif
