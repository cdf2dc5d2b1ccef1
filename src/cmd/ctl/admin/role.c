/* role add, delete, get, list, grant-permission and revoke-permission. */
#include "cmd/ctl/admin/role.h"

#include "codec/pb/rpc.pb.h"

#include <strings.h>

/* -- Ranges -- */

static const struct slice open_end = {(const uint8_t *)"", 1}; /* one zero byte */

struct permission_range {
    struct slice key, end;
};

/* The end of the keys that begin with this text, in the arena. */
static struct slice prefix_end(struct ctl *ctl, struct slice prefix)
{
    void *buffer = arena_alloc(ctl->arena, prefix.len + 1);
    if (!buffer)
        return SLICE_EMPTY;
    vigil_bytes end = vigil_prefix_end(vigil_bytes_of(prefix.ptr, prefix.len), buffer);
    return slice_of(end.data, end.size);
}

static const char *range_error(const struct role_flags *flags, const char *key, const char *end)
{
    if (flags->prefix && flags->from_key && (!end || !*key))
        return "--from-key and --prefix flags are mutually exclusive";
    if (!*key || !end)
        return NULL;
    if (flags->prefix)
        return "unexpected endkey argument with --prefix flag";
    return flags->from_key ? "unexpected endkey argument with --from-key flag" : NULL;
}

/* The words from a given one on are "key [endkey]". An empty key means all keys, from "\0" on. */
static int read_range(struct ctl *ctl, size_t first, struct permission_range *ret_range)
{
    const struct role_flags *flags = ctl->flags;
    const char *key = ctl->words[first];
    const char *end = ctl->word_count > first + 1 ? ctl->words[first + 1] : NULL;
    const char *wrong = range_error(flags, key, end);
    if (wrong)
        return ctl_refuse(ctl, "%s", wrong);
    struct permission_range range = {.key = *key ? slice_from_text(key) : open_end};
    if (!*key)
        range.end = flags->prefix || flags->from_key ? open_end : SLICE_EMPTY;
    else if (end)
        range.end = slice_from_text(end);
    else if (flags->prefix)
        range.end = prefix_end(ctl, range.key);
    else if (flags->from_key)
        range.end = open_end;
    *ret_range = range;
    return CTL_OK;
}

/* -- Output -- */

static void write_bytes(struct ctl *ctl, struct slice bytes)
{
    if (bytes.len)
        fwrite(bytes.ptr, 1, bytes.len, ctl->out);
}

/* "[key, end)"; "[key, <open ended>" without a bracket, as etcdctl has it. */
static void write_range(struct ctl *ctl, const struct pb_permission *permission)
{
    fputs("\t[", ctl->out);
    write_bytes(ctl, permission->key);
    fputs(", ", ctl->out);
    if (slice_equal(permission->range_end, open_end)) {
        fputs("<open ended>", ctl->out);
    } else {
        write_bytes(ctl, permission->range_end);
        fputc(')', ctl->out);
    }
    /* etcdctl recognizes a prefix by its end, however the permission was granted. */
    bool is_prefix = slice_equal(prefix_end(ctl, permission->key), permission->range_end);
    if (is_prefix && (permission->key.len || ctl->style == CTL_ETCDCTL_3_4)) {
        fputs(" (prefix ", ctl->out);
        write_bytes(ctl, permission->key);
        fputc(')', ctl->out);
    }
    fputc('\n', ctl->out);
}

static void write_permissions(struct ctl *ctl, const struct pb_auth_role_get_response *role,
                              int32_t type)
{
    for (size_t i = 0; i < role->perm_count; i++) {
        const struct pb_permission *permission = &role->perm[i];
        if (permission->perm_type != type && permission->perm_type != PB_PERMISSION_TYPE_READWRITE)
            continue;
        if (permission->range_end.len) {
            write_range(ctl, permission);
        } else {
            fputc('\t', ctl->out);
            write_bytes(ctl, permission->key);
            fputc('\n', ctl->out);
        }
    }
}

/* `user get --detail` shows several roles, so the name is not always the first word. */
static const char *shown_role;

static void write_role(struct ctl *ctl, const void *response)
{
    const struct pb_auth_role_get_response *role = response;
    bool is_root =
        strcmp(shown_role, "root") == 0 && !role->perm_count && ctl->style != CTL_ETCDCTL_3_4;
    fprintf(ctl->out, "Role %s\nKV Read:\n%s", shown_role, is_root ? "\t[, <open ended>\n" : "");
    write_permissions(ctl, role, PB_PERMISSION_TYPE_READ);
    fprintf(ctl->out, "KV Write:\n%s", is_root ? "\t[, <open ended>\n" : "");
    write_permissions(ctl, role, PB_PERMISSION_TYPE_WRITE);
}

static const char *type_name(int32_t type)
{
    static const char *const names[] = {[PB_PERMISSION_TYPE_READ] = "READ",
                                        [PB_PERMISSION_TYPE_WRITE] = "WRITE",
                                        [PB_PERMISSION_TYPE_READWRITE] = "READWRITE"};
    return type >= 0 && (size_t)type < COUNT_OF(names) ? names[type] : "UNKNOWN";
}

static void write_role_fields(struct ctl *ctl, const void *response)
{
    const struct pb_auth_role_get_response *role = response;
    ctl_field_header(ctl, role->header);
    for (size_t i = 0; i < role->perm_count; i++) {
        /* etcdctl has two spaces here. */
        fprintf(ctl->out, "\"PermType\" :  %s\n", type_name(role->perm[i].perm_type));
        ctl_field_text(ctl, "Key", role->perm[i].key);
        ctl_field_text(ctl, "RangeEnd", role->perm[i].range_end);
    }
}

static void write_roles(struct ctl *ctl, const void *response)
{
    const struct pb_auth_role_list_response *list = response;
    for (size_t i = 0; i < list->roles_count; i++)
        fprintf(ctl->out, "%.*s\n", SLICE_ARGS(list->roles[i]));
}

static void write_roles_fields(struct ctl *ctl, const void *response)
{
    const struct pb_auth_role_list_response *list = response;
    ctl_field_header(ctl, list->header);
    fputs("\"Roles\" :", ctl->out);
    for (size_t i = 0; i < list->roles_count; i++) {
        fputc(' ', ctl->out);
        ctl_write_quoted(ctl->out, list->roles[i]);
    }
    fputc('\n', ctl->out);
}

/* The key is shown as it was typed, also if it was empty. */
static void write_revoked(struct ctl *ctl, const void *response)
{
    (void)response;
    struct permission_range range;
    if (read_range(ctl, 1, &range) != CTL_OK)
        return; /* it was checked before the call */
    const char *role = ctl->words[0], *key = ctl->words[1];
    if (!range.end.len)
        fprintf(ctl->out, "Permission of key %s is revoked from role %s\n", key, role);
    else if (slice_equal(range.end, open_end))
        fprintf(ctl->out, "Permission of range [%s, <open ended> is revoked from role %s\n", key,
                role);
    else
        fprintf(ctl->out, "Permission of range [%s, %.*s) is revoked from role %s\n", key,
                SLICE_ARGS(range.end), role);
}

/* -- Commands -- */

int role_show(struct ctl *ctl, const char *name)
{
    static const struct ctl_shape shape = {.type = &pb_auth_role_get_response_table,
                                           .simple = write_role,
                                           .fields = write_role_fields};
    struct pb_auth_role_get_request request = {.role = slice_from_text(name)};
    shown_role = name;
    return admin_call_and_print(ctl, METHOD_ROLE_GET, &request, &shape);
}

int admin_role_get(struct ctl *ctl)
{
    return role_show(ctl, ctl->words[0]);
}

int admin_role_add(struct ctl *ctl)
{
    static const struct ctl_shape shape = {.type = &pb_auth_role_add_response_table,
                                           .done = "Role %1 created\n"};
    struct pb_auth_role_add_request request = {.name = slice_from_text(ctl->words[0])};
    return admin_call_and_print(ctl, METHOD_ROLE_ADD, &request, &shape);
}

int admin_role_delete(struct ctl *ctl)
{
    static const struct ctl_shape shape = {.type = &pb_auth_role_delete_response_table,
                                           .done = "Role %1 deleted\n"};
    struct pb_auth_role_delete_request request = {.role = slice_from_text(ctl->words[0])};
    return admin_call_and_print(ctl, METHOD_ROLE_DELETE, &request, &shape);
}

int admin_role_list(struct ctl *ctl)
{
    static const struct ctl_shape shape = {.type = &pb_auth_role_list_response_table,
                                           .simple = write_roles,
                                           .fields = write_roles_fields};
    static const struct pb_auth_role_list_request request;
    return admin_call_and_print(ctl, METHOD_ROLE_LIST, &request, &shape);
}

/* The names of protobuf's enum in any case, as clientv3 accepts them. */
static int read_type(struct ctl *ctl, const char *word, int32_t *ret_type)
{
    for (int32_t type = PB_PERMISSION_TYPE_READ; type <= PB_PERMISSION_TYPE_READWRITE; type++) {
        if (strcasecmp(word, type_name(type)) == 0) {
            *ret_type = type;
            return CTL_OK;
        }
    }
    return ctl_refuse(ctl, "invalid permission type: %s", word);
}

int admin_role_grant_permission(struct ctl *ctl)
{
    static const struct ctl_shape shape = {.type = &pb_auth_role_grant_permission_response_table,
                                           .done = "Role %1 updated\n"};
    struct pb_permission permission = {0};
    int code = read_type(ctl, ctl->words[1], &permission.perm_type);
    struct permission_range range;
    if (code == CTL_OK)
        code = read_range(ctl, 2, &range);
    if (code != CTL_OK)
        return code;
    permission.key = range.key;
    permission.range_end = range.end;
    struct pb_auth_role_grant_permission_request request = {
        .name = slice_from_text(ctl->words[0]),
        .perm = &permission,
    };
    return admin_call_and_print(ctl, METHOD_ROLE_GRANT_PERMISSION, &request, &shape);
}

int admin_role_revoke_permission(struct ctl *ctl)
{
    static const struct ctl_shape shape = {.type = &pb_auth_role_revoke_permission_response_table,
                                           .simple = write_revoked,
                                           .fields = admin_fields_header};
    struct permission_range range;
    int code = read_range(ctl, 1, &range);
    if (code != CTL_OK)
        return code;
    struct pb_auth_role_revoke_permission_request request = {
        .role = slice_from_text(ctl->words[0]),
        .key = range.key,
        .range_end = range.end,
    };
    return admin_call_and_print(ctl, METHOD_ROLE_REVOKE_PERMISSION, &request, &shape);
}
