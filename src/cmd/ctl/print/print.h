/*
 * How answers are written: --write-out simple, fields, json, protobuf, table, and our jsonl.
 *
 * json and protobuf are made from the message's table alone (print/go_json.h), so a command says
 * only how its simple lines, fields and tables look.
 */
#ifndef VIGIL_CMD_CTL_PRINT_PRINT_H
#define VIGIL_CMD_CTL_PRINT_PRINT_H

#include "cmd/ctl/ctl.h"

/* How one kind of answer is shown. A NULL function: the format is not supported for it, which
 * etcdctl says with "unsupported …" and an exit code of its own. */
struct ctl_shape {
    const struct pb_message *type;
    /* What simple prints of an answer that has only a header, which is what fields prints: "%1" is
     * the first word of the command. */
    const char *done;
    void (*simple)(struct ctl *ctl, const void *response);
    void (*fields)(struct ctl *ctl, const void *response);
    void (*table)(struct ctl *ctl, const void *response);
    void (*jsonl)(struct ctl *ctl, const void *response); /* NULL: json */
    /* NULL: print/go_json.h does it by the table. For answers that are a struct of etcd's client
     * library rather than a message. */
    void (*json)(struct ctl *ctl, const void *response);
    bool hex_ids; /* json with --hex shows ids as hexadecimal texts: answers about members */
    const char *no_protobuf; /* the type that etcdctl says it cannot marshal; NULL: it can */
    bool header_only;        /* protobuf is only the header: such a struct embeds it */
};

/* Writes the answer in the format that was chosen. Returns the exit code; CTL_IO if standard output
 * cannot be written. */
int ctl_print(struct ctl *ctl, const struct ctl_shape *shape, const void *response);

/* -- For fields -- */

/* "Name" : value */
void ctl_field_text(struct ctl *ctl, const char *name, struct slice text); /* quoted as Go does */
void ctl_field_int(struct ctl *ctl, const char *name, int64_t number);
void ctl_field_uint(struct ctl *ctl, const char *name, uint64_t number);
void ctl_field_id(struct ctl *ctl, const char *name, uint64_t id); /* hexadecimal with --hex */
void ctl_field_bool(struct ctl *ctl, const char *name, bool truth);
void ctl_field_lease(struct ctl *ctl, const char *name, int64_t id);
struct pb_response_header;
void ctl_field_header(struct ctl *ctl, const struct pb_response_header *header);
struct pb_key_value;
void ctl_field_kv(struct ctl *ctl, const char *prefix, const struct pb_key_value *kv);

/* -- For simple -- */

/* The key and the value on two lines, --hex and --decode respected. */
void ctl_simple_kv(struct ctl *ctl, bool prints_key, bool prints_value,
                   const struct pb_key_value *kv);

/* -- For tables -- */

/* A table with lines around its cells, written when it is complete, and freed then. Cells are
 * copied. */
struct ctl_table;
struct ctl_table *ctl_table_new(struct ctl *ctl, const char *const *heads, size_t count);
void ctl_table_add(struct ctl_table *table, const char *format, ...)
    __attribute__((format(printf, 2, 3))); /* the next cell; a row ends with the last column */
void ctl_table_write(struct ctl_table *table);

#endif
