#include "import/v2/notes.h"

#include "base/xalloc.h"
#include "codec/json/writer.h"

void v2_note_write(FILE *to, const struct v2_note *note)
{
    if (!to)
        return;
    struct buf line = {0};
    struct json_writer writer;
    json_writer_init(&writer, &line);
    json_begin_object(&writer);
    json_member_text(&writer, "level", note->level);
    json_member_text(&writer, "msg", note->message);
    for (size_t i = 0; i < V2_NOTE_FIELDS_MAX && note->fields[i].name; i++) {
        const struct v2_note_field *field = &note->fields[i];
        json_key(&writer, field->name);
        if (field->texts)
            json_strings(&writer, field->texts, field->text_count);
        else if (field->number)
            json_raw(&writer, slice_from_text(field->number));
        else
            json_text(&writer, field->text);
    }
    json_end_object(&writer);
    if (json_writer_finish(&writer) == ST_OK)
        fprintf(to, "%.*s\n", SLICE_ARGS(buf_slice(&line)));
    buf_fini(&line);
}
