/*
 * Messages as JSON, as Go's encoding/json writes the structs that protoc-gen-go makes of them, and
 * so as etcdctl shows them: the names of the proto file, no field that is zero, bytes in base64,
 * enums and 64-bit integers as numbers, <, > and & escaped.
 */
#ifndef VIGIL_CMD_CTL_PRINT_GO_JSON_H
#define VIGIL_CMD_CTL_PRINT_GO_JSON_H

#include "codec/pb/pb.h"

#include <stdio.h>

struct go_json {
    FILE *to;
    bool hex_ids;  /* cluster_id, member_id and ID as hexadecimal texts, and never left out */
    bool go_names; /* the parts of a oneof have Go's names: "ResponsePut", as in etcd 3.4 */
};

/* {"field":value,…} */
void go_json_message(const struct go_json *json, const struct pb_message *type,
                     const void *message);
/* The fields without the braces. Returns whether there was one. */
bool go_json_fields(const struct go_json *json, const struct pb_message *type, const void *message);
/* A text with its quotes. */
void go_json_text(FILE *to, struct slice text);
/* Bytes as a text in base64, with its quotes. */
void go_json_bytes(FILE *to, struct slice bytes);

#endif
