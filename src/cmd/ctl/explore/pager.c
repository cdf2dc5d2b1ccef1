#include "cmd/ctl/explore/pager.h"

#include "base/xalloc.h"

vigil_client *explore_client(struct ctl *ctl, int *ret_exit)
{
    if (ctl->globals.max_receive_bytes <= 0)
        ctl->globals.max_receive_bytes = PAGER_RECEIVE_BYTES;
    return ctl_client(ctl, ret_exit);
}

static void append(struct buf *to, struct slice bytes)
{
    xalloc_check(buf_append(to, bytes) == ST_OK ? to : NULL, bytes.len);
}

void pager_init(struct pager *pager, struct ctl *ctl, vigil_client *client,
                const struct pager_options *options)
{
    struct slice prefix = options->prefix;
    *pager = (struct pager){.ctl = ctl,
                            .client = client,
                            .options = *options,
                            .revision = options->revision,
                            .limit = PAGER_KEYS_FIRST,
                            .exit = CTL_OK};
    append(&pager->end, prefix);
    vigil_bytes end = vigil_prefix_end(vigil_bytes_of(prefix.ptr, prefix.len), pager->end.ptr);
    if (end.data != pager->end.ptr) /* every key has the prefix */
        append(&pager->end, slice_of(end.data, end.size));
    else
        pager->end.len = end.size;
    append(&pager->from, prefix.len ? prefix : SLICE_LITERAL("\0"));
}

void pager_fini(struct pager *pager)
{
    vigil_call_free(pager->call);
    buf_fini(&pager->from);
    buf_fini(&pager->end);
}

/* -- Pages -- */

static vigil_call *page_call(const struct pager *pager)
{
    vigil_range_request request;
    vigil_range_request_init(&request);
    request.key = vigil_bytes_of(pager->from.ptr, pager->from.len);
    request.range_end = vigil_bytes_of(pager->end.ptr, pager->end.len);
    request.limit = pager->limit;
    request.revision = pager->revision;
    request.keys_only = pager->options.keys_only;
    return vigil_range(pager->client, &request);
}

static bool take_page(struct pager *pager)
{
    const vigil_range_response *page = vigil_range_result(pager->call);
    pager->page = page;
    pager->at = 0;
    pager->is_last = !page->more || page->kv_count == 0;
    pager->revision = pager->revision ? pager->revision : page->header->revision;
    if (page->kv_count > 0) {
        vigil_bytes last = page->kvs[page->kv_count - 1].key;
        pager->from.len = 0;
        append(&pager->from, slice_of(last.data, last.size));
        append(&pager->from, SLICE_LITERAL("\0"));
        /* The next page has as many keys as would have about PAGER_BYTES_AIM if they were like
         * these. */
        uint64_t bytes = 1;
        for (size_t i = 0; i < page->kv_count; i++)
            bytes += page->kvs[i].key.size + page->kvs[i].value.size;
        uint64_t fitting = (uint64_t)PAGER_BYTES_AIM * (page->kv_count + 1) / bytes;
        pager->limit = fitting < 1                ? 1
                       : fitting > PAGER_KEYS_MAX ? PAGER_KEYS_MAX
                                                  : (int64_t)fitting;
    }
    return true;
}

static bool read_page(struct pager *pager)
{
    for (;;) {
        vigil_call_free(pager->call);
        pager->page = NULL;
        pager->call = page_call(pager);
        int code = vigil_call_run(pager->call);
        if (code == VIGIL_OK)
            return take_page(pager);
        if (code != VIGIL_ERROR_TOO_LARGE || pager->limit == 1)
            break;
        pager->limit /= 2;
    }
    pager->exit = ctl_fail_with(pager->ctl, vigil_call_error(pager->call));
    return false;
}

const vigil_kv *pager_next(struct pager *pager)
{
    if (pager->exit != CTL_OK)
        return NULL;
    if (!pager->page && !read_page(pager))
        return NULL;
    if (pager->at == pager->page->kv_count && (pager->is_last || !read_page(pager)))
        return NULL;
    return pager->at < pager->page->kv_count ? &pager->page->kvs[pager->at++] : NULL;
}
