/*
 * The structs of Go that an AdmissionReview is decoded into, as far as it is an answer: which
 * values their fields take, with the errors of Go's decoder, and their JSON in Go's order. Names
 * are compared as they are, as in Kubernetes; unknown ones are ignored. Read-only; any thread.
 */
#ifndef VIGIL_KUBE_POLICY_WEBHOOKS_GO_FIELDS_H
#define VIGIL_KUBE_POLICY_WEBHOOKS_GO_FIELDS_H

#include "codec/json/tree.h"
#include "codec/json/writer.h"

enum go_value {
    GO_TEXT,
    GO_BOOL,
    GO_INT32,
    GO_INT64_POINTER,
    GO_BYTES, /* base64, or an array of numbers */
    GO_TEXTS,
    GO_TEXT_MAP,
    GO_STRUCT, /* written also if it is empty */
    GO_STRUCT_POINTER,
    GO_STRUCTS,
};

struct go_struct;

struct go_field {
    const char *name;
    enum go_value value;
    const char *type;           /* Go's name for the type of one value: "v1.PatchType" */
    const struct go_struct *of; /* that of a struct, or of each item */
    const char *place;          /* in errors, if it is in an embedded struct: "TypeMeta.kind" */
};

struct go_struct {
    const char *name; /* "AdmissionResponse" */
    const struct go_field *fields;
    size_t count;
};

extern const struct go_struct go_admission_response;
extern const struct go_struct go_status_metadata, go_status_details;

/* A member of a type other than the field's is an error; null is the same as no member. ST_INVALID,
 * with the text of Go's decoder for the first one; ST_NOMEM. name: that of the object in its
 * parent, for errors. The arena is for temporary memory, also below. */
MUST_CHECK
enum status go_fields_check(const struct go_struct *type, const struct json_node *object,
                            const char *name, struct arena *arena, struct error *error);

/* Writes a struct of texts, numbers and lists of such structs that was checked, as Go does. A text
 * for which there is no memory is left out, which the arena remembers. */
void go_fields_write(const struct go_struct *type, const struct json_node *object,
                     struct arena *arena, struct json_writer *to);

/* The bytes of a member that was checked, in the arena; NULL: none. ST_NOMEM. */
MUST_CHECK
enum status go_fields_bytes(const struct json_node *node, struct arena *arena,
                            struct slice *ret_bytes);

#endif
