#include "etcd/service/member_change.h"

#include "base/log/log.h"
#include "base/slices.h"
#include "etcd/shared/service.h"
#include "net/url.h"

#include <stdlib.h>

static bool is_blank(uint8_t c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static struct slice trimmed(struct slice text)
{
    while (text.len && is_blank(text.ptr[0]))
        text = slice_sub(text, 1, text.len - 1);
    while (text.len && is_blank(text.ptr[text.len - 1]))
        text.len--;
    return text;
}

enum status member_change_urls(struct slice *urls, size_t count, bool is_new,
                               struct engine_member *ret_member)
{
    struct error error;
    if (count == 0)
        return ST_MEMBER_BAD_UR_LS;
    if (count > ENGINE_PEER_URLS_MAX)
        return ST_LIMIT;
    for (size_t i = 0; i < count; i++) {
        if (is_new)
            urls[i] = trimmed(urls[i]);
        if (url_check(urls[i], &error) != ST_OK)
            return ST_MEMBER_BAD_UR_LS;
    }
    if (is_new)
        slices_sort(urls, count);
    ret_member->peer_urls = urls;
    ret_member->peer_url_count = count;
    return ST_OK;
}

static const char *text_of(enum engine_member_call call)
{
    switch (call) {
    case ENGINE_MEMBER_ADD:
        return "added member";
    case ENGINE_MEMBER_REMOVE:
        return "removed member";
    case ENGINE_MEMBER_UPDATE:
        return "updated member";
    default:
        return NULL;
    }
}

void member_change_log(const struct etcd_api *api, const struct engine_members *members)
{
    const struct engine_member *member = &members->member;
    const char *text = text_of(members->call);
    if (members->op.status != ST_OK || !text)
        return;
    log_info(text, LOG_HEX("cluster-id", api->identity.cluster_id),
             LOG_HEX("local-member-id", api->identity.member_id), LOG_HEX("member-id", member->id),
             LOG_SLICES("peer-urls", member->peer_urls, member->peer_url_count),
             LOG_BOOL("is-learner", member->learner));
    if (members->call == ENGINE_MEMBER_ADD)
        log_warn(
            "the new member is listed and cannot join: this server is a single node and stays one",
            LOG_HEX("member-id", member->id));
}
