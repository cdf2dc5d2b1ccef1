/* member list, add, remove, update and promote. */
#include "cmd/ctl/admin/admin.h"
#include "cmd/ctl/live/fetch.h"
#include "cmd/ctl/session.h"
#include "codec/pb/rpc.pb.h"

#include <inttypes.h>
#include <strings.h>

/* -- Output -- */

static const char *text_of(bool truth)
{
    return truth ? "true" : "false";
}

/* The URLs with commas between them, as a text in the arena. */
static const char *join(struct ctl *ctl, const struct slice *urls, size_t count)
{
    size_t bytes = 1;
    for (size_t i = 0; i < count; i++)
        bytes += urls[i].len + 1;
    char *text = arena_alloc(ctl->arena, bytes);
    if (!text)
        return "";
    char *end = text;
    for (size_t i = 0; i < count; i++) {
        if (i)
            *end++ = ',';
        slice_copy(end, urls[i]);
        end += urls[i].len;
    }
    *end = '\0';
    return text;
}

static void write_members(struct ctl *ctl, const void *response)
{
    const struct pb_member_list_response *list = response;
    for (size_t i = 0; i < list->members_count; i++) {
        const struct pb_member *member = &list->members[i];
        /* A member that was added but has never started has no name yet. */
        fprintf(ctl->out, "%" PRIx64 ", %s, %.*s, %s, %s, %s\n", member->id,
                member->name.len ? "started" : "unstarted", SLICE_ARGS(member->name),
                join(ctl, member->peer_urls, member->peer_urls_count),
                join(ctl, member->client_urls, member->client_urls_count),
                text_of(member->is_learner));
    }
}

static void write_member_fields(struct ctl *ctl, const struct pb_member *member)
{
    ctl_field_id(ctl, "ID", member->id);
    ctl_field_text(ctl, "Name", member->name);
    for (size_t i = 0; i < member->peer_urls_count; i++)
        ctl_field_text(ctl, "PeerURL", member->peer_urls[i]);
    for (size_t i = 0; i < member->client_urls_count; i++)
        ctl_field_text(ctl, "ClientURL", member->client_urls[i]);
    ctl_field_bool(ctl, "IsLearner", member->is_learner);
    fputc('\n', ctl->out);
}

static void write_fields(struct ctl *ctl, const void *response)
{
    const struct pb_member_list_response *list = response;
    ctl_field_header(ctl, list->header);
    for (size_t i = 0; i < list->members_count; i++)
        write_member_fields(ctl, &list->members[i]);
}

static void write_table(struct ctl *ctl, const void *response)
{
    static const char *const heads[] = {"ID",         "Status",       "Name",
                                        "Peer Addrs", "Client Addrs", "Is Learner"};
    const struct pb_member_list_response *list = response;
    struct ctl_table *table = ctl_table_new(ctl, heads, COUNT_OF(heads));
    for (size_t i = 0; i < list->members_count; i++) {
        const struct pb_member *member = &list->members[i];
        ctl_table_add(table, "%" PRIx64, member->id);
        ctl_table_add(table, "%s", member->name.len ? "started" : "unstarted");
        ctl_table_add(table, "%.*s", SLICE_ARGS(member->name));
        ctl_table_add(table, "%s", join(ctl, member->peer_urls, member->peer_urls_count));
        ctl_table_add(table, "%s", join(ctl, member->client_urls, member->client_urls_count));
        ctl_table_add(table, "%s", text_of(member->is_learner));
    }
    ctl_table_write(table);
}

/* What the new member must be started with. */
static void write_settings(struct ctl *ctl, const struct pb_member_add_response *added)
{
    const struct member_flags *flags = ctl->flags;
    const char *before = "";
    fprintf(ctl->out, "\nETCD_NAME=\"%s\"\nETCD_INITIAL_CLUSTER=\"", ctl->words[0]);
    for (size_t i = 0; i < added->members_count; i++) {
        const struct pb_member *member = &added->members[i];
        bool is_new = added->member && member->id == added->member->id;
        struct slice name = is_new ? slice_from_text(ctl->words[0]) : member->name;
        for (size_t n = 0; n < member->peer_urls_count; n++) {
            fprintf(ctl->out, "%s%.*s=%.*s", before, SLICE_ARGS(name),
                    SLICE_ARGS(member->peer_urls[n]));
            before = ",";
        }
    }
    fprintf(ctl->out,
            "\"\nETCD_INITIAL_ADVERTISE_PEER_URLS=\"%s\"\n"
            "ETCD_INITIAL_CLUSTER_STATE=\"existing\"\n",
            flags->peer_urls);
}

static uint64_t cluster_of(const void *response)
{
    const struct pb_response_header *header = admin_header(response);
    return header ? header->cluster_id : 0;
}

static void write_added(struct ctl *ctl, const void *response)
{
    const struct pb_member_add_response *added = response;
    bool as_learner = added->member && added->member->is_learner && ctl->style != CTL_ETCDCTL_3_4;
    fprintf(ctl->out, "Member %16" PRIx64 " added%sto cluster %16" PRIx64 "\n",
            added->member ? added->member->id : 0, as_learner ? " as learner " : " ",
            cluster_of(response));
    write_settings(ctl, added);
}

static void write_changed(struct ctl *ctl, const char *what, const void *response)
{
    uint64_t id = 0;
    (void)admin_member_id(ctl, ctl->words[0], &id); /* it was checked before the call */
    fprintf(ctl->out, "Member %16" PRIx64 " %s cluster %16" PRIx64 "\n", id, what,
            cluster_of(response));
}

static void write_removed(struct ctl *ctl, const void *response)
{
    write_changed(ctl, "removed from", response);
}

static void write_updated(struct ctl *ctl, const void *response)
{
    write_changed(ctl, "updated in", response);
}

static void write_promoted(struct ctl *ctl, const void *response)
{
    write_changed(ctl, "promoted in", response);
}

/* -- Commands -- */

/* What etcd's client library says about a URL for members; NULL: it is one. */
static const char *url_error(struct slice url)
{
    struct slice rest = url;
    bool is_http = slice_has_prefix(rest, SLICE_LITERAL("http://")) ||
                   slice_has_prefix(rest, SLICE_LITERAL("https://"));
    if (!is_http)
        return slice_has_prefix(rest, SLICE_LITERAL("unix://")) ||
                       slice_has_prefix(rest, SLICE_LITERAL("unixs://"))
                   ? NULL
                   : "URL scheme must be http, https, unix, or unixs";
    (void)slice_cut(&rest, '/');
    (void)slice_cut(&rest, '/');
    struct slice host = slice_cut(&rest, '/');
    if (!memchr(host.ptr, ':', host.len))
        return "URL address does not have the form \"host:port\"";
    bool has_path = host.ptr + host.len < url.ptr + url.len;
    return has_path ? "URL must not contain a path" : NULL;
}

/* Splits --peer-urls. Go's strings.Split keeps empty parts, too. */
static int peer_urls(struct ctl *ctl, const char *text, struct slice **ret_urls, size_t *ret_count)
{
    size_t count = 1;
    for (const char *at = text; *at; at++)
        count += *at == ',';
    struct slice *urls = arena_alloc(ctl->arena, count * sizeof(*urls));
    if (!urls)
        return ctl_fail(ctl, CTL_ERROR, "out of memory");
    struct slice rest = slice_from_text(text);
    for (size_t i = 0; i < count; i++) {
        urls[i] = slice_trim(slice_cut(&rest, ','));
        const char *wrong = url_error(urls[i]);
        if (wrong)
            return ctl_fail(ctl, CTL_ERROR, "%s: %.*s", wrong, SLICE_ARGS(urls[i]));
    }
    *ret_urls = urls;
    *ret_count = count;
    return CTL_OK;
}

int admin_member_list(struct ctl *ctl)
{
    static const struct ctl_shape shape = {
        .type = &pb_member_list_response_table,
        .hex_ids = true,
        .simple = write_members,
        .fields = write_fields,
        .table = write_table,
    };
    const struct member_flags *flags = ctl->flags;
    bool is_serializable = strcmp(flags->consistency, "s") == 0;
    if (!is_serializable && strcmp(flags->consistency, "l") != 0)
        return ctl_fail(ctl, CTL_BAD_FEATURE, "unknown consistency flag \"%s\"",
                        ctl->style == CTL_VIGIL ? flags->consistency : "l");
    struct pb_member_list_request request = {.linearizable = !is_serializable};
    return admin_call_and_print(ctl, METHOD_MEMBER_LIST, &request, &shape);
}

/* A URL that was given as a word belongs into the flag. */
static int refuse_words(struct ctl *ctl)
{
    char text[512] = "too many arguments";
    size_t used = strlen(text);
    for (size_t i = 0; i < ctl->word_count && used < sizeof(text); i++) {
        if (strncasecmp(ctl->words[i], "http", 4) == 0)
            used += (size_t)snprintf(text + used, sizeof(text) - used,
                                     ", did you mean --peer-urls=%s", ctl->words[i]);
    }
    return ctl_refuse(ctl, "%s", text);
}

/* A single Vigil lists the member, as etcd's clients expect, and that is all. */
static void warn_of_single_vigil(struct ctl *ctl)
{
    vigil_error error;
    AUTO(metrics_fini) struct metrics metrics = {0};
    struct ctl_endpoints endpoints = ctl_endpoints(ctl);
    struct fetch *fetch = endpoints.count ? fetch_new(ctl, endpoints.texts[0], &error) : NULL;
    if (fetch && fetch_run(fetch, &metrics, &error) && metrics_are_of_single_vigil(&metrics))
        fprintf(stderr,
                "warning: this server is a single Vigil, which has no peers: the member is listed, "
                "but can never join, and gets no data.\nRemove it with vigil member remove. For a "
                "cluster, run members of etcd and Vigil in front of them (vigil serve "
                "--upstream-endpoints).\n");
    fetch_free(fetch);
}

int admin_member_add(struct ctl *ctl)
{
    static const struct ctl_shape shape = {
        .type = &pb_member_add_response_table, .hex_ids = true, .simple = write_added};
    const struct member_flags *flags = ctl->flags;
    if (ctl->word_count > 1)
        return refuse_words(ctl);
    if (!*flags->peer_urls)
        return ctl_refuse(ctl, "member peer urls not provided");
    struct pb_member_add_request request = {.is_learner = flags->learner};
    int code = peer_urls(ctl, flags->peer_urls, &request.peer_urls, &request.peer_urls_count);
    if (code == CTL_OK)
        code = admin_call_and_print(ctl, METHOD_MEMBER_ADD, &request, &shape);
    /* Under the name etcdctl nothing is written that etcdctl would not write. */
    if (code == CTL_OK && ctl->style == CTL_VIGIL)
        warn_of_single_vigil(ctl);
    return code;
}

int admin_member_remove(struct ctl *ctl)
{
    static const struct ctl_shape shape = {
        .type = &pb_member_remove_response_table, .hex_ids = true, .simple = write_removed};
    struct pb_member_remove_request request;
    int code = admin_member_id(ctl, ctl->words[0], &request.id);
    if (code != CTL_OK)
        return code;
    return admin_call_and_print(ctl, METHOD_MEMBER_REMOVE, &request, &shape);
}

int admin_member_update(struct ctl *ctl)
{
    static const struct ctl_shape shape = {
        .type = &pb_member_update_response_table, .hex_ids = true, .simple = write_updated};
    const struct member_flags *flags = ctl->flags;
    struct pb_member_update_request request;
    int code = admin_member_id(ctl, ctl->words[0], &request.id);
    if (code != CTL_OK)
        return code;
    if (!*flags->peer_urls)
        return ctl_refuse(ctl, "member peer urls not provided");
    code = peer_urls(ctl, flags->peer_urls, &request.peer_urls, &request.peer_urls_count);
    if (code != CTL_OK)
        return code;
    return admin_call_and_print(ctl, METHOD_MEMBER_UPDATE, &request, &shape);
}

int admin_member_promote(struct ctl *ctl)
{
    static const struct ctl_shape shape = {
        .type = &pb_member_promote_response_table, .hex_ids = true, .simple = write_promoted};
    struct pb_member_promote_request request;
    int code = admin_member_id(ctl, ctl->words[0], &request.id);
    if (code != CTL_OK)
        return code;
    return admin_call_and_print(ctl, METHOD_MEMBER_PROMOTE, &request, &shape);
}
