#include "kube/call/warning.h"

#include "codec/utf8.h"

/* The next text of the warnings; false: there is none. */
static bool next_text(struct slice *rest, struct slice *ret_text)
{
    if (!rest->len)
        return false;
    *ret_text = slice_cut(rest, '\0');
    return true;
}

/* The first characters of a valid text. */
static struct slice cut(struct slice text, size_t characters)
{
    size_t at = 0;
    while (at < text.len && characters--)
        at += utf8_char_len(slice_sub(text, at, text.len - at));
    return slice_sub(text, 0, at);
}

static bool is_control(struct slice text, size_t at)
{
    uint8_t c = text.ptr[at];
    return c < 0x20 || c == 0x7f || (c == 0xc2 && text.ptr[at + 1] < 0xa0); /* U+0080 to U+009F */
}

static bool is_clean(struct slice text)
{
    if (!text.len || !utf8_valid(text))
        return false;
    for (size_t i = 0; i < text.len; i++)
        if (is_control(text, i))
            return false;
    return true;
}

/* What the collected texts amount to. */
struct amount {
    size_t count;
    size_t whole;      /* characters */
    size_t short_ones; /* the same, if each is cut */
};

static struct amount amount_of(struct slice warnings)
{
    struct amount amount = {0};
    struct slice text;
    while (next_text(&warnings, &text)) {
        size_t characters = utf8_count(text);
        amount.count++;
        amount.whole += characters;
        amount.short_ones += size_min(characters, KUBE_WARNING_CUT);
    }
    return amount;
}

static bool has(struct slice warnings, struct slice wanted)
{
    struct slice text;
    while (next_text(&warnings, &text))
        if (slice_equal(text, wanted))
            return true;
    return false;
}

void kube_warning_add(struct buf *warnings, struct slice text)
{
    size_t before = warnings->len;
    struct amount amount = amount_of(buf_slice(warnings));
    bool cuts = amount.whole > KUBE_WARNINGS_MAX;
    if (amount.count >= KUBE_WARNINGS_COUNT_MAX ||
        (cuts && amount.short_ones >= KUBE_WARNINGS_MAX) || !is_clean(text))
        return;
    text = cut(text, cuts ? KUBE_WARNING_CUT : KUBE_WARNINGS_MAX + 1);
    if (has(buf_slice(warnings), text))
        return;
    if (buf_append(warnings, text) != ST_OK || buf_append(warnings, slice_of("", 1)) != ST_OK)
        warnings->len = before;
}

/* 299 is the code of lasting warnings (RFC 7234, section 5.5.7), and "-" stands for an unnamed
 * agent. */
static enum status write_field(struct slice text, struct buf *to)
{
    TRY(buf_append_text(to, "299 - \""));
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] == '"' || text.ptr[i] == '\\')
            TRY(buf_append_text(to, "\\"));
        TRY(buf_append(to, slice_sub(text, i, 1)));
    }
    return buf_append_text(to, "\"");
}

void kube_warning_fields(struct slice warnings, void (*add)(void *ctx, struct slice value),
                         void *ctx)
{
    AUTO(buf_fini) struct buf value = {0};
    bool cuts = warnings.len > KUBE_WARNINGS_MAX && amount_of(warnings).whole > KUBE_WARNINGS_MAX;
    struct slice text;
    while (next_text(&warnings, &text)) {
        value.len = 0;
        if (write_field(cuts ? cut(text, KUBE_WARNING_CUT) : text, &value) == ST_OK)
            add(ctx, buf_slice(&value));
    }
}
