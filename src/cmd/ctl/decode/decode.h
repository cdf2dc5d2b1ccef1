/*
 * Values as people read them: --decode auto|raw|text|json|k8s.
 *
 *     raw    the bytes
 *     text   the bytes, with escapes for what is not readable
 *     json   JSON is indented; everything else as text
 *     k8s    objects of Kubernetes, stored as protobuf or as JSON, become YAML; everything else as
 *            json
 *     auto   k8s for people (a terminal, a table, a difference), raw for programs
 *
 * Decoding never fails: a value that is not of the kind, or would need more memory than the arena
 * has, is shown as text. Servers and other clients control the values, so nothing is assumed of
 * them. Any thread.
 */
#ifndef VIGIL_CMD_CTL_DECODE_DECODE_H
#define VIGIL_CMD_CTL_DECODE_DECODE_H

#include "codec/json/tree.h"
#include "codec/json/writer.h"

#include <stdio.h>

enum decode_kind { DECODE_AUTO, DECODE_RAW, DECODE_TEXT, DECODE_JSON, DECODE_K8S };
#define DECODE_CHOICES "auto|raw|text|json|k8s" /* for the flag */

enum {
    /* Memory for one value: trees of JSON take about ten times their text. */
    DECODE_ARENA_BYTES_MAX = 128 << 20,
    /* Protobuf and JSON beyond this are shown as text; etcd's own limit of a value is 1.5 MiB. */
    DECODE_VALUE_BYTES_MAX = 8 << 20,
};

enum decoded_form { DECODED_TEXT, DECODED_JSON, DECODED_YAML };

struct decoded {
    enum decoded_form form;
    struct slice text;            /* lines for people; of DECODED_TEXT: the value itself */
    const struct json_node *tree; /* tree of JSON and YAML; otherwise NULL */
};

/* What auto means here. */
enum decode_kind decode_resolve(enum decode_kind kind, bool for_people);

/* An arena for decoded values, to be finished with arena_fini. */
void decode_arena_init(struct arena *arena);

/* The result borrows the value and the arena. auto is k8s here, and raw is text. */
void decode_value(struct arena *arena, enum decode_kind kind, struct slice value,
                  struct decoded *ret_decoded);

/* Writes the value: raw unchanged, everything else safely for a terminal. No line feed is added. */
void decode_put(FILE *to, enum decode_kind kind, struct slice value);

/* Writes the member of an object of -w jsonl: "name" with a string, or with JSON if the kind is
 * json or k8s and the value is; "nameBase64" if it is not UTF-8. */
void decode_put_member(struct json_writer *writer, const char *name, enum decode_kind kind,
                       struct slice value);

#endif
