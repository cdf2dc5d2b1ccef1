#include "cmd/ctl/print/print.h"

#include "cmd/ctl/decode/decode.h"
#include "cmd/ctl/decode/terminal.h"
#include "cmd/ctl/print/go_json.h"
#include "cmd/ctl/session.h"
#include "codec/pb/rpc.pb.h"

#include <inttypes.h>

static void print_json(struct ctl *ctl, const struct ctl_shape *shape, const void *response)
{
    struct go_json json = {
        .to = ctl->out,
        .hex_ids = shape->hex_ids && ctl->globals.hex && ctl->style != CTL_ETCDCTL_3_4,
        .go_names = ctl->style == CTL_ETCDCTL_3_4,
    };
    if (shape->json) {
        shape->json(ctl, response);
        return;
    }
    go_json_message(&json, shape->type, response);
    fputc('\n', ctl->out);
}

static int print_protobuf(struct ctl *ctl, const struct ctl_shape *shape, const void *response)
{
    AUTO(buf_fini) struct buf bytes = {0};
    if (shape->no_protobuf && ctl_is_etcdctl(ctl))
        return ctl_fail(ctl, CTL_BAD_FEATURE, "marshal unsupported for type %s",
                        shape->no_protobuf);
    const struct pb_message *type = shape->header_only ? &pb_response_header_table : shape->type;
    /* The header is the first field of every response. */
    const void *message = shape->header_only ? *(const void *const *)response : response;
    if (message && pb_append(type, message, &bytes) != ST_OK)
        return ctl_fail(ctl, CTL_ERROR, "out of memory");
    if (bytes.len)
        fwrite(bytes.ptr, 1, bytes.len, ctl->out);
    return CTL_OK;
}

static int unsupported(struct ctl *ctl)
{
    if (ctl->globals.format == CTL_UNKNOWN_FORMAT)
        return ctl_fail(ctl, CTL_BAD_FEATURE, "unsupported output format");
    return ctl_fail(ctl, CTL_BAD_FEATURE, "%s not supported as output format",
                    ctl->globals.write_out);
}

static int show(struct ctl *ctl, void (*fn)(struct ctl *ctl, const void *response),
                const void *response)
{
    if (!fn)
        return unsupported(ctl);
    fn(ctl, response);
    return CTL_OK;
}

static int print(struct ctl *ctl, const struct ctl_shape *shape, const void *response)
{
    if (shape->done && ctl->globals.format == CTL_SIMPLE) {
        const char *text = shape->done;
        for (; *text; text++) {
            if (*text != '%')
                fputc(*text, ctl->out);
            else
                fputs(ctl->words[*++text - '1'], ctl->out);
        }
        return CTL_OK;
    }
    if (shape->done && ctl->globals.format == CTL_FIELDS) {
        ctl_field_header(ctl, *(const struct pb_response_header *const *)response);
        return CTL_OK;
    }
    switch (ctl->globals.format) {
    case CTL_SIMPLE:
        return show(ctl, shape->simple, response);
    case CTL_FIELDS:
        return show(ctl, shape->fields, response);
    case CTL_TABLE:
        return show(ctl, shape->table, response);
    case CTL_JSONL:
        if (shape->jsonl)
            return show(ctl, shape->jsonl, response);
        __attribute__((fallthrough));
    case CTL_JSON:
        print_json(ctl, shape, response);
        return CTL_OK;
    case CTL_PROTOBUF:
        return print_protobuf(ctl, shape, response);
    default:
        return unsupported(ctl);
    }
}

int ctl_print(struct ctl *ctl, const struct ctl_shape *shape, const void *response)
{
    int code = print(ctl, shape, response);
    if (fflush(ctl->out) != 0)
        return ctl_fail(ctl, CTL_IO, "standard output cannot be written");
    return code;
}

/* -- fields -- */

void ctl_field_text(struct ctl *ctl, const char *name, struct slice text)
{
    fprintf(ctl->out, "\"%s\" : ", name);
    ctl_write_quoted(ctl->out, text);
    fputc('\n', ctl->out);
}

void ctl_field_int(struct ctl *ctl, const char *name, int64_t number)
{
    fprintf(ctl->out, "\"%s\" : %" PRId64 "\n", name, number);
}

void ctl_field_uint(struct ctl *ctl, const char *name, uint64_t number)
{
    fprintf(ctl->out, "\"%s\" : %" PRIu64 "\n", name, number);
}

void ctl_field_bool(struct ctl *ctl, const char *name, bool truth)
{
    fprintf(ctl->out, "\"%s\" : %s\n", name, truth ? "true" : "false");
}

/* etcdctl 3.4 has no hexadecimal fields except for members. */
static bool shows_hex(const struct ctl *ctl)
{
    return ctl->globals.hex && ctl->style != CTL_ETCDCTL_3_4;
}

void ctl_field_id(struct ctl *ctl, const char *name, uint64_t id)
{
    fprintf(ctl->out, shows_hex(ctl) ? "\"%s\" : %" PRIx64 "\n" : "\"%s\" : %" PRIu64 "\n", name,
            id);
}

void ctl_field_lease(struct ctl *ctl, const char *name, int64_t id)
{
    fprintf(ctl->out, shows_hex(ctl) ? "\"%s\" : %016" PRIx64 "\n" : "\"%s\" : %" PRId64 "\n", name,
            id);
}

void ctl_field_header(struct ctl *ctl, const struct pb_response_header *header)
{
    static const struct pb_response_header none;
    if (!header)
        header = &none;
    ctl_field_id(ctl, "ClusterID", header->cluster_id);
    ctl_field_id(ctl, "MemberID", header->member_id);
    if (header->revision > 0 || ctl->style == CTL_ETCDCTL_3_4)
        ctl_field_int(ctl, "Revision", header->revision);
    ctl_field_uint(ctl, "RaftTerm", header->raft_term);
}

void ctl_field_kv(struct ctl *ctl, const char *prefix, const struct pb_key_value *kv)
{
    char name[64];
#define NAMED(suffix) (snprintf(name, sizeof(name), "%s" suffix, prefix), name)
    ctl_field_text(ctl, NAMED("Key"), kv->key);
    ctl_field_int(ctl, NAMED("CreateRevision"), kv->create_revision);
    ctl_field_int(ctl, NAMED("ModRevision"), kv->mod_revision);
    ctl_field_int(ctl, NAMED("Version"), kv->version);
    ctl_field_text(ctl, NAMED("Value"), kv->value);
    ctl_field_lease(ctl, NAMED("Lease"), kv->lease);
#undef NAMED
}

/* -- simple -- */

/* How keys and values are written: etcdctl never decodes, and to a terminal we write nothing that
 * could control it. */
static enum decode_kind kind_of(const struct ctl *ctl, bool is_key)
{
    bool for_people = terminal_is(ctl->out);
    if (ctl_is_etcdctl(ctl))
        return DECODE_RAW;
    if (is_key)
        return for_people ? DECODE_TEXT : DECODE_RAW;
    return decode_resolve((enum decode_kind)ctl->globals.decode, for_people);
}

static void write_bytes(struct ctl *ctl, struct slice bytes, bool is_key)
{
    if (ctl->globals.hex) {
        for (size_t i = 0; i < bytes.len; i++)
            fprintf(ctl->out, "\\x%02x", bytes.ptr[i]);
    } else {
        decode_put(ctl->out, kind_of(ctl, is_key), bytes);
    }
    fputc('\n', ctl->out);
}

void ctl_simple_kv(struct ctl *ctl, bool prints_key, bool prints_value,
                   const struct pb_key_value *kv)
{
    if (prints_key)
        write_bytes(ctl, kv->key, true);
    if (prints_value)
        write_bytes(ctl, kv->value, false);
}
