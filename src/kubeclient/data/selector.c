#include "base/buf.h"
#include "base/error.h"

#include <stdlib.h>
#include <vigil/kube/selector.h>

enum { LABEL_NAME_BYTES_MAX = 63, LABEL_PREFIX_BYTES_MAX = 253 };

struct vigil_selector {
    bool of_fields;
    struct buf text; /* with a final zero; empty without conditions */
    struct error error;
};

static struct vigil_selector *selector_new(bool of_fields)
{
    struct vigil_selector *selector = calloc(1, sizeof(*selector));
    if (selector)
        selector->of_fields = of_fields;
    return selector;
}

vigil_selector *vigil_selector_new(void)
{
    return selector_new(false);
}

vigil_selector *vigil_field_selector_new(void)
{
    return selector_new(true);
}

void vigil_selector_free(vigil_selector *selector)
{
    if (!selector)
        return;
    buf_fini(&selector->text);
    free(selector);
}

/* -- Rules of Kubernetes for labels -- */

static bool is_alphanumeric(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* Letters, digits, "-", "_" and ".", with a letter or digit at both ends. */
static bool is_name(const char *text, size_t len)
{
    if (len == 0 || len > LABEL_NAME_BYTES_MAX || !is_alphanumeric(text[0]) ||
        !is_alphanumeric(text[len - 1]))
        return false;
    for (size_t i = 0; i < len; i++) {
        if (!is_alphanumeric(text[i]) && !strchr("-_.", text[i]))
            return false;
    }
    return true;
}

/* A DNS subdomain: lower-case letters, digits, "-" and ".". */
static bool is_prefix(const char *text, size_t len)
{
    if (len == 0 || len > LABEL_PREFIX_BYTES_MAX)
        return false;
    for (size_t i = 0; i < len; i++) {
        bool inner = i > 0 && i + 1 < len && text[i - 1] != '.' && text[i + 1] != '.';
        bool fits = (text[i] >= 'a' && text[i] <= 'z') || (text[i] >= '0' && text[i] <= '9');
        if (!fits && !(inner && (text[i] == '-' || text[i] == '.')))
            return false;
    }
    return true;
}

static bool is_label_key(const char *key)
{
    const char *slash = strchr(key, '/');
    if (!slash)
        return is_name(key, strlen(key));
    return is_prefix(key, (size_t)(slash - key)) && is_name(slash + 1, strlen(slash + 1));
}

/* -- Conditions -- */

static enum status append_escaped(struct buf *to, const char *value)
{
    for (; *value; value++) {
        if (strchr("\\,=", *value))
            TRY(buf_append_text(to, "\\"));
        TRY(buf_append(to, slice_of(value, 1)));
    }
    return ST_OK;
}

static enum status check_key(struct vigil_selector *selector, const char *key)
{
    if (!key)
        return error_set(&selector->error, ST_INVALID, "a condition has no key");
    if (selector->of_fields && (!*key || strpbrk(key, ",=!\\")))
        return error_set(&selector->error, ST_INVALID, "\"%.80s\" does not name a field", key);
    if (!selector->of_fields && !is_label_key(key))
        return error_set(&selector->error, ST_INVALID, "\"%.80s\" is not the key of a label", key);
    return ST_OK;
}

static enum status append_value(struct vigil_selector *selector, const char *value)
{
    if (!value)
        return error_set(&selector->error, ST_INVALID, "a condition has no value");
    if (selector->of_fields)
        return append_escaped(&selector->text, value);
    if (*value && !is_name(value, strlen(value)))
        return error_set(&selector->error, ST_INVALID, "\"%.80s\" is not the value of a label",
                         value);
    return buf_append_text(&selector->text, value);
}

/* The next condition follows a comma in the place of the final zero. */
static void reopen(struct vigil_selector *selector)
{
    if (selector->text.len)
        selector->text.ptr[selector->text.len - 1] = ',';
}

static enum status append_pair(struct vigil_selector *selector, const char *key,
                               const char *between, const char *value)
{
    TRY(check_key(selector, key));
    reopen(selector);
    TRY(buf_append_text(&selector->text, key));
    TRY(buf_append_text(&selector->text, between));
    TRY(append_value(selector, value));
    return buf_append(&selector->text, slice_of("", 1));
}

/* before: "!" if it must be absent. */
static enum status append_existence(struct vigil_selector *selector, const char *before,
                                    const char *key)
{
    TRY(check_key(selector, key));
    reopen(selector);
    TRY(buf_append_text(&selector->text, before));
    TRY(buf_append_text(&selector->text, key));
    return buf_append(&selector->text, slice_of("", 1));
}

static enum status append_set(struct vigil_selector *selector, const char *key,
                              const char *operator, const char * const * values, size_t count)
{
    TRY(check_key(selector, key));
    if (count == 0)
        return error_set(&selector->error, ST_INVALID, "a set of values for \"%.80s\" is empty",
                         key);
    reopen(selector);
    TRY(buf_append_text(&selector->text, key));
    TRY(buf_append_text(&selector->text, operator));
    for (size_t i = 0; i < count; i++) {
        TRY(buf_append_text(&selector->text, i ? "," : " ("));
        TRY(append_value(selector, values[i]));
    }
    return buf_append(&selector->text, slice_of(")", 2));
}

static bool is_usable(const struct vigil_selector *selector)
{
    return selector && selector->error.status == ST_OK;
}

/* Keeps the error of a condition; one without a text is missing memory. */
static void settle(struct vigil_selector *selector, enum status status)
{
    if (status != ST_OK && selector->error.status == ST_OK)
        error_set(&selector->error, status, "out of memory");
}

static bool may_use_sets(struct vigil_selector *selector)
{
    if (!is_usable(selector))
        return false;
    if (!selector->of_fields)
        return true;
    error_set(&selector->error, ST_INVALID,
              "a field can only be compared with equals and not_equals");
    return false;
}

void vigil_selector_equals(vigil_selector *selector, const char *key, const char *value)
{
    if (is_usable(selector))
        settle(selector, append_pair(selector, key, "=", value));
}

void vigil_selector_not_equals(vigil_selector *selector, const char *key, const char *value)
{
    if (is_usable(selector))
        settle(selector, append_pair(selector, key, "!=", value));
}

void vigil_selector_in(vigil_selector *selector, const char *key, const char *const *values,
                       size_t count)
{
    if (may_use_sets(selector))
        settle(selector, append_set(selector, key, " in", values, count));
}

void vigil_selector_not_in(vigil_selector *selector, const char *key, const char *const *values,
                           size_t count)
{
    if (may_use_sets(selector))
        settle(selector, append_set(selector, key, " notin", values, count));
}

void vigil_selector_exists(vigil_selector *selector, const char *key)
{
    if (may_use_sets(selector))
        settle(selector, append_existence(selector, "", key));
}

void vigil_selector_absent(vigil_selector *selector, const char *key)
{
    if (may_use_sets(selector))
        settle(selector, append_existence(selector, "!", key));
}

const char *vigil_selector_text(const vigil_selector *selector)
{
    if (!is_usable(selector))
        return NULL;
    return selector->text.len ? (const char *)selector->text.ptr : "";
}

const char *vigil_selector_error(const vigil_selector *selector)
{
    return selector ? selector->error.text : "out of memory";
}
