#include "cmd/ctl/decode/safe_text.h"

#include "codec/utf8.h"

enum { PIECE_BYTES = 16 };

/* One character of the text as it is shown. */
struct piece {
    char text[PIECE_BYTES];
    size_t len;  /* length of the text */
    size_t read; /* bytes that it stands for */
    bool escaped;
};

static uint32_t code_point(const uint8_t *at, size_t len)
{
    static const uint8_t masks[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    uint32_t code = at[0] & masks[len];
    for (size_t i = 1; i < len; i++)
        code = code << 6 | (at[i] & 0x3fu);
    return code;
}

static void escape(struct piece *piece, const char *format, unsigned code)
{
    piece->len = (size_t)snprintf(piece->text, sizeof(piece->text), format, code);
    piece->escaped = true;
}

static bool is_plain_ascii(uint8_t byte, enum safe_lines lines)
{
    if (lines == SAFE_LINES && (byte == '\n' || byte == '\t'))
        return true;
    return byte >= ' ' && byte < 0x7f;
}

/* The first character of a text that is not empty. */
static struct piece piece_of(struct slice text, enum safe_lines lines)
{
    struct piece piece = {.read = 1};
    size_t len = utf8_char_len(text);
    if (len <= 1 && (len == 0 || !is_plain_ascii(text.ptr[0], lines))) {
        if (lines == SAFE_ONE_LINE && text.ptr[0] == '\n')
            escape(&piece, "\\%c", 'n');
        else if (lines == SAFE_ONE_LINE && text.ptr[0] == '\t')
            escape(&piece, "\\%c", 't');
        else
            escape(&piece, "\\x%02x", text.ptr[0]);
        return piece;
    }
    piece.read = len;
    uint32_t code = code_point(text.ptr, len);
    /* These are characters beyond ASCII that a terminal obeys, or that change the order of those
     * around them. */
    if ((code >= 0x80 && code <= 0x9f) || (code >= 0x202a && code <= 0x202e) ||
        (code >= 0x2066 && code <= 0x2069) || code == 0x200e || code == 0x200f || code == 0x061c ||
        code == 0x2028 || code == 0x2029 || code == 0xfeff) {
        escape(&piece, "\\u%04x", code);
        return piece;
    }
    memcpy(piece.text, text.ptr, len);
    piece.len = len;
    return piece;
}

static struct piece take_piece(struct slice *text, enum safe_lines lines)
{
    struct piece piece = piece_of(*text, lines);
    *text = slice_sub(*text, piece.read, text->len - piece.read);
    return piece;
}

bool safe_text_is(struct slice text, enum safe_lines lines)
{
    while (text.len)
        if (take_piece(&text, lines).escaped)
            return false;
    return true;
}

enum status safe_text_append(struct buf *to, struct slice text, enum safe_lines lines)
{
    TRY(buf_reserve(to, text.len));
    while (text.len) {
        struct piece piece = take_piece(&text, lines);
        TRY(buf_append(to, slice_of(piece.text, piece.len)));
    }
    return ST_OK;
}

void safe_text_put(FILE *to, struct slice text, enum safe_lines lines)
{
    while (text.len) {
        struct piece piece = take_piece(&text, lines);
        fwrite(piece.text, 1, piece.len, to);
    }
}

/* How many bytes fit; *ret_cut: the rest does not. */
static size_t fitting(struct slice text, size_t columns, bool *ret_cut)
{
    size_t used = 0, fits = 0, at = 0;
    while (at < text.len) {
        struct piece piece = piece_of(slice_sub(text, at, text.len - at), SAFE_ONE_LINE);
        used += piece.escaped ? piece.len : 1;
        if (used > columns)
            break;
        at += piece.read;
        if (used < columns)
            fits = at;
    }
    *ret_cut = at < text.len;
    return *ret_cut ? fits : at;
}

void safe_text_put_short(FILE *to, struct slice text, size_t columns)
{
    bool cut;
    size_t len = fitting(text, columns, &cut);
    safe_text_put(to, slice_sub(text, 0, len), SAFE_ONE_LINE);
    fputs(cut ? "…" : "", to);
}

enum status safe_text_append_short(struct buf *to, struct slice text, size_t columns)
{
    bool cut;
    size_t len = fitting(text, columns, &cut);
    TRY(safe_text_append(to, slice_sub(text, 0, len), SAFE_ONE_LINE));
    return cut ? buf_append_text(to, "…") : ST_OK;
}
