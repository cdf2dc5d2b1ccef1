/*
 * Writes JSON into a buffer, item by item, with commas and escapes.
 *
 *     struct json_writer w;
 *     json_writer_init(&w, &out);
 *     json_begin_object(&w);
 *     json_member_text(&w, "health", "true");
 *     json_end_object(&w);
 *     TRY(json_writer_finish(&w));
 *
 * The first failure is kept and makes the rest do nothing, so only the end needs checking. Text
 * that is not UTF-8 is written with U+FFFD for each bad byte: the output is always valid. One
 * owner, one thread; the buffer is borrowed until json_writer_finish.
 */
#ifndef VIGIL_CODEC_JSON_WRITER_H
#define VIGIL_CODEC_JSON_WRITER_H

#include "base/buf.h"
#include "base/slice.h"
#include "base/status.h"

struct json_writer {
    struct buf *out;
    enum status status; /* status of the first step that failed */
    unsigned depth;     /* objects and arrays still open */
    bool needs_comma;   /* the next item on this level follows another */
};

void json_writer_init(struct json_writer *writer, struct buf *out);

/* Everything opened must have been closed. After a failure the buffer holds a part of the text. */
MUST_CHECK
enum status json_writer_finish(const struct json_writer *writer);

void json_begin_object(struct json_writer *writer);
void json_end_object(struct json_writer *writer);
void json_begin_array(struct json_writer *writer);
void json_end_array(struct json_writer *writer);

/* The name of the next value of an object. */
void json_key(struct json_writer *writer, const char *name);
void json_key_of(struct json_writer *writer, struct slice name);

void json_string(struct json_writer *writer, struct slice text);
void json_text(struct json_writer *writer, const char *text);
/* An array of strings. */
void json_strings(struct json_writer *writer, const struct slice *texts, size_t count);
/* All digits are written: a reader that only has doubles loses those beyond 2^53. */
void json_i64(struct json_writer *writer, int64_t number);
void json_u64(struct json_writer *writer, uint64_t number);
/* A value that is JSON already. */
void json_raw(struct json_writer *writer, struct slice json);
void json_bool(struct json_writer *writer, bool truth);
void json_null(struct json_writer *writer);

/* A member of an object: its name and its value. */
void json_member_string(struct json_writer *writer, const char *name, struct slice text);
void json_member_text(struct json_writer *writer, const char *name, const char *text);
void json_member_i64(struct json_writer *writer, const char *name, int64_t number);
void json_member_u64(struct json_writer *writer, const char *name, uint64_t number);
void json_member_bool(struct json_writer *writer, const char *name, bool truth);
void json_member_raw(struct json_writer *writer, const char *name, struct slice json);
/* Begin with json_begin_object and json_begin_array. */
void json_member_object(struct json_writer *writer, const char *name);
void json_member_array(struct json_writer *writer, const char *name);

#endif
