#include "auth/token/settings.h"

#include "base/clock.h"
#include "base/options/value.h"

enum { TTL_DEFAULT_S = 300, DURATION_TEXT_BYTES = 64 };

/* Removes and returns the part before the next comma. */
static struct slice next_part(struct slice *rest)
{
    const uint8_t *comma = rest->len ? memchr(rest->ptr, ',', rest->len) : NULL;
    size_t len = comma ? (size_t)(comma - rest->ptr) : rest->len;
    struct slice part = slice_sub(*rest, 0, len);
    size_t taken = comma ? len + 1 : len;
    *rest = slice_sub(*rest, taken, rest->len - taken);
    return part;
}

static MUST_CHECK
enum status parse_ttl(struct slice value, int64_t *ret_s, struct error *error)
{
    char text[DURATION_TEXT_BYTES] = {0};
    int64_t ns;
    if (value.len >= sizeof(text))
        return error_set(error, ST_INVALID, "--auth-token: ttl is too long");
    slice_copy(text, value);
    if (option_value_duration(text, &ns) != ST_OK || ns < NS_PER_S)
        return error_set(
            error, ST_INVALID,
            "--auth-token: ttl '%s' is not a duration of at least a second, such as 10m", text);
    /* The claim exp counts seconds. */
    *ret_s = ns / NS_PER_S;
    return ST_OK;
}

static MUST_CHECK
enum status parse_option(struct slice part, struct auth_token_settings *settings, unsigned *seen,
                         struct error *error)
{
    static const char *const names[] = {"sign-method", "pub-key", "priv-key", "ttl"};
    struct slice *const places[] = {&settings->sign_method, &settings->public_key_file,
                                    &settings->private_key_file};
    const uint8_t *equals = part.len ? memchr(part.ptr, '=', part.len) : NULL;
    if (!equals)
        return error_set(error, ST_INVALID, "--auth-token: '%.*s' has no value", SLICE_ARGS(part));
    size_t name_len = (size_t)(equals - part.ptr);
    struct slice name = slice_sub(part, 0, name_len);
    struct slice value = slice_sub(part, name_len + 1, part.len - name_len - 1);
    for (unsigned i = 0; i < COUNT_OF(names); i++) {
        if (!slice_equal(name, slice_from_text(names[i])))
            continue;
        if (*seen & 1u << i)
            return error_set(error, ST_INVALID, "--auth-token: %s is there twice", names[i]);
        *seen |= 1u << i;
        if (i == COUNT_OF(places))
            return parse_ttl(value, &settings->ttl_s, error);
        *places[i] = value;
        return ST_OK;
    }
    return error_set(error, ST_INVALID, "--auth-token: there is no option '%.*s'",
                     SLICE_ARGS(name));
}

enum status auth_token_settings_parse(const char *text, struct auth_token_settings *ret_settings,
                                      struct error *error)
{
    struct auth_token_settings settings = {.ttl_s = TTL_DEFAULT_S};
    struct slice rest = slice_from_text(text);
    unsigned seen = 0;
    struct slice kind = next_part(&rest);
    if (slice_equal(kind, SLICE_LITERAL("jwt")))
        settings.kind = AUTH_TOKEN_JWT;
    else if (!slice_equal(kind, SLICE_LITERAL("simple")))
        return error_set(error, ST_INVALID, "--auth-token: '%.*s' is neither simple nor jwt",
                         SLICE_ARGS(kind));
    while (rest.len)
        TRY(parse_option(next_part(&rest), &settings, &seen, error));
    if (settings.kind == AUTH_TOKEN_JWT && settings.sign_method.len == 0)
        return error_set(error, ST_INVALID, "--auth-token: jwt needs a sign-method");
    *ret_settings = settings;
    return ST_OK;
}
