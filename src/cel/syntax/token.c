#include "cel/syntax/token.h"

#include "codec/utf8.h"

static const char *const names[] = {
#define X(name, text) [CEL_TOKEN_##name] = (text),
    CEL_TOKENS(X)
#undef X
};

const char *cel_token_name(enum cel_token_kind kind)
{
    return names[kind];
}

void cel_lexer_init(struct cel_lexer *lexer, struct slice source, struct cel_errors *errors)
{
    assert(source.len < UINT32_MAX);
    *lexer = (struct cel_lexer){.source = source, .errors = errors};
}

/* -- Characters. The byte behind the end is 0, which begins and continues no word. -- */

static uint8_t byte_at(const struct cel_lexer *lexer, size_t at)
{
    return at < lexer->source.len ? lexer->source.ptr[at] : 0;
}

static bool is_digit(uint8_t c)
{
    return c >= '0' && c <= '9';
}

static bool is_hex(uint8_t c)
{
    return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static bool is_letter(uint8_t c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static size_t skip_digits(const struct cel_lexer *lexer, size_t at)
{
    while (is_digit(byte_at(lexer, at)))
        at++;
    return at;
}

/* -- Words; each function returns the end of the word that begins at `at` -- */

static size_t number_end(const struct cel_lexer *lexer, size_t at, enum cel_token_kind *ret_kind)
{
    *ret_kind = CEL_TOKEN_INT;
    if (byte_at(lexer, at) == '0' && byte_at(lexer, at + 1) == 'x' &&
        is_hex(byte_at(lexer, at + 2))) {
        at += 2;
        while (is_hex(byte_at(lexer, at)))
            at++;
    } else {
        at = skip_digits(lexer, at);
        if (byte_at(lexer, at) == '.' && is_digit(byte_at(lexer, at + 1))) {
            *ret_kind = CEL_TOKEN_DOUBLE;
            at = skip_digits(lexer, at + 1);
        }
        if (byte_at(lexer, at) == 'e' || byte_at(lexer, at) == 'E') {
            bool has_sign = byte_at(lexer, at + 1) == '+' || byte_at(lexer, at + 1) == '-';
            size_t digits = at + 1 + has_sign;
            /* "1e" without digits is the number 1 and the name e. */
            if (is_digit(byte_at(lexer, digits))) {
                *ret_kind = CEL_TOKEN_DOUBLE;
                at = skip_digits(lexer, digits);
            }
        }
        if (*ret_kind == CEL_TOKEN_DOUBLE)
            return at;
    }
    if (byte_at(lexer, at) == 'u' || byte_at(lexer, at) == 'U') {
        *ret_kind = CEL_TOKEN_UINT;
        at++;
    }
    return at;
}

/* The end of the escape sequence that begins with the backslash at `at`; 0 if it is invalid, with
 * the place of the byte that makes it so. */
static size_t escape_end(const struct cel_lexer *lexer, size_t at, size_t *ret_failed_at)
{
    static const struct {
        uint8_t letter, digits;
    } sequences[] = {{'x', 2}, {'X', 2}, {'u', 4}, {'U', 8}};
    uint8_t c = byte_at(lexer, ++at);
    if (c && strchr("abfnrtv\"'\\?`", c))
        return at + 1;
    for (size_t i = 0; i < COUNT_OF(sequences); i++)
        if (c == sequences[i].letter) {
            for (size_t n = 1; n <= sequences[i].digits; n++)
                if (!is_hex(byte_at(lexer, at + n))) {
                    *ret_failed_at = at + n;
                    return 0;
                }
            return at + 1 + sequences[i].digits;
        }
    if (c >= '0' && c <= '3') {
        for (size_t n = 1; n <= 2; n++)
            if (byte_at(lexer, at + n) < '0' || byte_at(lexer, at + n) > '7') {
                *ret_failed_at = at + n;
                return 0;
            }
        return at + 3;
    }
    *ret_failed_at = at;
    return 0;
}

/* The end of a text in quotes, which begin at `at`; 0 if it has none. */
static size_t quoted_end(const struct cel_lexer *lexer, size_t at, bool raw, size_t *ret_failed_at)
{
    uint8_t quote = byte_at(lexer, at);
    bool empty_or_triple = byte_at(lexer, at + 1) == quote;
    bool triple = empty_or_triple && byte_at(lexer, at + 2) == quote;
    if (empty_or_triple && !triple)
        return at + 2;
    size_t i = at + (triple ? 3 : 1);
    while (i < lexer->source.len) {
        uint8_t c = byte_at(lexer, i);
        if (c == quote &&
            (!triple || (byte_at(lexer, i + 1) == quote && byte_at(lexer, i + 2) == quote)))
            return i + (triple ? 3 : 1);
        if (!triple && (c == '\n' || c == '\r'))
            break;
        if (c == '\\' && !raw) {
            i = escape_end(lexer, i, ret_failed_at);
            if (!i)
                return triple ? at + 2 : 0;
            continue;
        }
        i++;
    }
    *ret_failed_at = i;
    /* Three quotes without an end are an empty text, and a text that begins with the third. */
    return triple ? at + 2 : 0;
}

/* The end of a text with its prefixes, r for raw and b for bytes; 0 if there is none at `at`. */
static size_t text_end(const struct cel_lexer *lexer, size_t at, enum cel_token_kind *ret_kind,
                       size_t *ret_failed_at)
{
    bool bytes = byte_at(lexer, at) == 'b' || byte_at(lexer, at) == 'B';
    at += bytes;
    bool raw = byte_at(lexer, at) == 'r' || byte_at(lexer, at) == 'R';
    at += raw;
    *ret_kind = bytes ? CEL_TOKEN_BYTES : CEL_TOKEN_STRING;
    if (byte_at(lexer, at) != '"' && byte_at(lexer, at) != '\'')
        return 0;
    return quoted_end(lexer, at, raw, ret_failed_at);
}

static size_t name_end(const struct cel_lexer *lexer, size_t at, enum cel_token_kind *ret_kind)
{
    static const struct {
        struct slice text;
        enum cel_token_kind kind;
    } keywords[] = {
        {SLICE_LITERAL("in"), CEL_TOKEN_IN},
        {SLICE_LITERAL("true"), CEL_TOKEN_TRUE},
        {SLICE_LITERAL("false"), CEL_TOKEN_FALSE},
        {SLICE_LITERAL("null"), CEL_TOKEN_NULL},
    };
    size_t end = at + 1;
    while (is_letter(byte_at(lexer, end)) || is_digit(byte_at(lexer, end)))
        end++;
    *ret_kind = CEL_TOKEN_IDENTIFIER;
    for (size_t i = 0; i < COUNT_OF(keywords); i++)
        if (slice_equal(slice_sub(lexer->source, at, end - at), keywords[i].text))
            *ret_kind = keywords[i].kind;
    return end;
}

static size_t escaped_name_end(const struct cel_lexer *lexer, size_t at, size_t *ret_failed_at)
{
    size_t i = at + 1;
    while (is_letter(byte_at(lexer, i)) || is_digit(byte_at(lexer, i)) ||
           (byte_at(lexer, i) && strchr(".-/ ", byte_at(lexer, i))))
        i++;
    *ret_failed_at = i;
    return byte_at(lexer, i) == '`' && i > at + 1 ? i + 1 : 0;
}

static size_t operator_end(const struct cel_lexer *lexer, size_t at, enum cel_token_kind *ret_kind,
                           size_t *ret_failed_at)
{
    /* Longer ones first. */
    static const struct {
        char text[3];
        enum cel_token_kind kind;
    } operators[] = {
        {"==", CEL_TOKEN_EQUALS},      {"!=", CEL_TOKEN_NOT_EQUALS},
        {"<=", CEL_TOKEN_LESS_EQUALS}, {">=", CEL_TOKEN_GREATER_EQUALS},
        {"&&", CEL_TOKEN_AND},         {"||", CEL_TOKEN_OR},
        {"<", CEL_TOKEN_LESS},         {">", CEL_TOKEN_GREATER},
        {"[", CEL_TOKEN_LEFT_BRACKET}, {"]", CEL_TOKEN_RIGHT_BRACKET},
        {"{", CEL_TOKEN_LEFT_BRACE},   {"}", CEL_TOKEN_RIGHT_BRACE},
        {"(", CEL_TOKEN_LEFT_PAREN},   {")", CEL_TOKEN_RIGHT_PAREN},
        {".", CEL_TOKEN_DOT},          {",", CEL_TOKEN_COMMA},
        {"-", CEL_TOKEN_MINUS},        {"!", CEL_TOKEN_NOT},
        {"?", CEL_TOKEN_QUESTION},     {":", CEL_TOKEN_COLON},
        {"+", CEL_TOKEN_PLUS},         {"*", CEL_TOKEN_TIMES},
        {"/", CEL_TOKEN_DIVIDE},       {"%", CEL_TOKEN_MODULO},
    };
    uint8_t first = byte_at(lexer, at), second = byte_at(lexer, at + 1);
    for (size_t i = 0; i < COUNT_OF(operators); i++) {
        const char *text = operators[i].text;
        if (first == (uint8_t)text[0] && (!text[1] || second == (uint8_t)text[1])) {
            *ret_kind = operators[i].kind;
            return at + strlen(text);
        }
    }
    /* "=", "&" and "|" could have been doubled: the byte behind them is wrong. */
    *ret_failed_at = first && strchr("=&|", first) ? at + 1 : at;
    return 0;
}

/* 0: there is no word at `at`; *ret_failed_at is the first byte that fits none. */
static size_t word_end(const struct cel_lexer *lexer, size_t at, enum cel_token_kind *ret_kind,
                       size_t *ret_failed_at)
{
    uint8_t c = byte_at(lexer, at);
    size_t end = text_end(lexer, at, ret_kind, ret_failed_at);
    if (end || c == '"' || c == '\'')
        return end;
    if (is_letter(c))
        return name_end(lexer, at, ret_kind);
    if (is_digit(c) || (c == '.' && is_digit(byte_at(lexer, at + 1))))
        return number_end(lexer, at, ret_kind);
    if (c == '`') {
        *ret_kind = CEL_TOKEN_ESCAPED_IDENTIFIER;
        return escaped_name_end(lexer, at, ret_failed_at);
    }
    return operator_end(lexer, at, ret_kind, ret_failed_at);
}

static void skip_space(struct cel_lexer *lexer)
{
    for (;;) {
        uint8_t c = byte_at(lexer, lexer->at);
        if (c == '/' && byte_at(lexer, lexer->at + 1) == '/')
            while (lexer->at < lexer->source.len && byte_at(lexer, lexer->at) != '\n')
                lexer->at++;
        else if (c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\f')
            lexer->at++;
        else
            return;
    }
}

/* Reports the text from the beginning of the word to the character that fits none, and continues
 * behind that character. */
static void skip_unknown(struct cel_lexer *lexer, size_t failed_at)
{
    size_t len = 0;
    if (failed_at < lexer->source.len)
        len = utf8_char_len(slice_sub(lexer->source, failed_at, lexer->source.len - failed_at));
    else
        failed_at = lexer->source.len;
    struct slice text = slice_sub(lexer->source, lexer->at, failed_at + len - lexer->at);
    cel_error_add(lexer->errors, lexer->at, "Syntax error: token recognition error at: '%.*s'",
                  SLICE_ARGS(text));
    lexer->at = (uint32_t)(failed_at + size_max(len, failed_at < lexer->source.len));
}

struct cel_token cel_lexer_next(struct cel_lexer *lexer)
{
    for (;;) {
        skip_space(lexer);
        uint32_t at = lexer->at;
        if (at == lexer->source.len)
            return (struct cel_token){CEL_TOKEN_END, at, SLICE_LITERAL("<EOF>")};
        enum cel_token_kind kind = CEL_TOKEN_END;
        size_t failed_at = at;
        size_t end = word_end(lexer, at, &kind, &failed_at);
        if (end) {
            lexer->at = (uint32_t)end;
            return (struct cel_token){kind, at, slice_sub(lexer->source, at, end - at)};
        }
        skip_unknown(lexer, failed_at);
    }
}
