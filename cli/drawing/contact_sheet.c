/* contact_sheet.c - see contact_sheet.h. */
#include "cli/drawing/contact_sheet.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void put_text(bytes *out, const char *text) { bytes_add(out, text, strlen(text)); }

/* Text between tags, and within quotes. */
static void put_escaped(bytes *out, const char *text) {
    for (; *text; text++) {
        const char *as = NULL;
        if (*text == '&')
            as = "&amp;";
        else if (*text == '<')
            as = "&lt;";
        else if (*text == '>')
            as = "&gt;";
        else if (*text == '"')
            as = "&quot;";
        bytes_add(out, as ? as : text, as ? strlen(as) : 1);
    }
}

/* A path as a link: all but letters, digits and a few signs as %XX. */
static void put_link(bytes *out, const char *path) {
    for (; *path; path++) {
        const unsigned char ch = (unsigned char)*path;
        const bool plain = (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') ||
                           (ch >= '0' && ch <= '9') || strchr("-._~/", ch) != NULL;
        if (plain)
            bytes_add(out, path, 1);
        else
            bytes_print(out, "%%%02X", ch);
    }
}

/* A file's path from the page's folder on; the file is there. */
static void put_relative(bytes *out, const char *folder, const char *path) {
    char *whole = realpath(path, NULL);
    size_t same = 0; /* what both begin with, up to a slash */
    if (!whole) {
        put_link(out, path);
        return;
    }
    for (size_t i = 0;; i++) {
        const bool a = !folder[i] || folder[i] == '/', b = whole[i] == '/';
        if (a && b) same = i + 1;
        if (!folder[i] || folder[i] != whole[i]) break;
    }
    const size_t size = strlen(folder);
    for (size_t i = same; i < size; i++)
        if (i == same || folder[i - 1] == '/') put_text(out, "../");
    put_link(out, whole + same);
    free(whole);
}

/* The folder of a file that is to be made, absolute. */
static char *folder_of(const char *path) {
    const char *slash = strrchr(path, '/');
    if (!slash) return realpath(".", NULL);
    const size_t size = slash == path ? 1 : (size_t)(slash - path);
    char *folder = grow(NULL, size + 1);
    memcpy(folder, path, size);
    folder[size] = 0;
    char *whole = realpath(folder, NULL);
    free(folder);
    return whole;
}

int contact_sheet_open(contact_sheet *s, const command *c, const char *path,
                       const string_list *inputs) {
    *s = (contact_sheet){ .folder = folder_of(path) };
    if (!s->folder) return fail(c, "%s: its folder: %s", path, strerror(errno));
    int code = output_open(&s->out, c, path, inputs);
    if (code) {
        free(s->folder);
        s->folder = NULL;
    }
    return code;
}

void contact_sheet_add(contact_sheet *s, const char *dir, const char *name, const char *from,
                       const char *caption) {
    if (!s->folder) return;
    bytes path = { NULL, 0, 0 };
    bytes_print(&path, "%s/%s", dir, name);
    bytes_add(&path, "", 1);
    put_text(&s->crops, "<figure><a href=\"");
    put_relative(&s->crops, s->folder, path.data);
    put_text(&s->crops, "\"><img loading=\"lazy\" alt=\"\" src=\"");
    put_relative(&s->crops, s->folder, path.data);
    put_text(&s->crops, "\"></a><figcaption>");
    put_escaped(&s->crops, name);
    put_text(&s->crops, "<br><a href=\"");
    put_relative(&s->crops, s->folder, from);
    put_text(&s->crops, "\">");
    put_escaped(&s->crops, from);
    put_text(&s->crops, "</a><br>");
    put_escaped(&s->crops, caption);
    put_text(&s->crops, "</figcaption></figure>\n");
    free(path.data);
    s->crop_count++;
}

void contact_sheet_leave_out(contact_sheet *s, const char *path, const char *why) {
    if (!s->folder) return;
    put_text(&s->others, "<figure><a href=\"");
    put_relative(&s->others, s->folder, path);
    put_text(&s->others, "\"><img loading=\"lazy\" alt=\"\" src=\"");
    put_relative(&s->others, s->folder, path);
    put_text(&s->others, "\"></a><figcaption>");
    put_escaped(&s->others, path);
    put_text(&s->others, "<br><b>");
    put_escaped(&s->others, why);
    put_text(&s->others, "</b></figcaption></figure>\n");
    s->other_count++;
}

static const char head[] =
    "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Crops</title>\n"
    "<meta name=\"viewport\" content=\"width=device-width\">\n<style>\n"
    "body { font: 14px sans-serif; margin: 1em; background: #fff; color: #222 }\n"
    "section { display: grid; grid-template-columns: repeat(auto-fill, minmax(180px, 1fr)); gap: "
    "12px }\n"
    "figure { margin: 0; padding: 8px; border: 1px solid #ccc; overflow-wrap: anywhere }\n"
    "img { width: 100%; height: 180px; object-fit: contain; background: #eee }\n"
    "b { color: #a00 }\n</style></head><body>\n";

static void write_bytes(output *out, const bytes *b) {
    if (b->size) output_write(out, b->data, b->size);
}

int contact_sheet_close(contact_sheet *s, const command *c, int code) {
    if (!s->folder) return code;
    bytes title = { NULL, 0, 0 };
    bytes_print(&title, "<h1>%zu crops</h1>\n<section>\n", s->crop_count);
    output_write(&s->out, head, sizeof head - 1);
    write_bytes(&s->out, &title);
    write_bytes(&s->out, &s->crops);
    title.size = 0;
    bytes_print(&title, "</section>\n<h1>%zu left out</h1>\n<section>\n", s->other_count);
    write_bytes(&s->out, &title);
    write_bytes(&s->out, &s->others);
    output_write(&s->out, "</section>\n</body></html>\n",
                 sizeof "</section>\n</body></html>\n" - 1);
    code = output_close(&s->out, c, true, code);
    free(title.data);
    free(s->crops.data);
    free(s->others.data);
    free(s->folder);
    return code;
}
