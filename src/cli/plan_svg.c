/*
 * Rows are GPUs, so that what a reservation waits for can be seen. Sessions without GPUs share a
 * node's first row and are drawn over each other, half transparent.
 */
#include "cli/plan_svg.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/str.h"
#include "cli/text.h"

#define WIDTH 1000
#define LEFT 120
#define ROW 14
#define HEAD 30
#define SVG_MAX ((size_t)64 << 20)
#define SPAN_MIN (3600 * USEC_PER_SEC)
#define TICKS 8

struct drawing {
    struct buf out;
    uint64_t from, to; /* usec */
    const json_t *nodes;
};

static unsigned rows_of(const json_t *node)
{
    return 1 + (unsigned)json_u64_or(json_object_get(node, "capacity"), "gpus", 0);
}

/* The first row of a node; *ret_rows: how many it has. -1: it is not there. */
static int row_of(const struct drawing *d, const char *name, unsigned *ret_rows)
{
    const json_t *n;
    int row = 0;
    size_t i;

    json_array_foreach (d->nodes, i, n) {
        *ret_rows = rows_of(n);
        if (str_eq(json_str_or(n, "name", ""), name))
            return row;
        row += (int)*ret_rows;
    }
    return -1;
}

static double x_of(const struct drawing *d, uint64_t usec)
{
    uint64_t at = MIN_OF(MAX_OF(usec, d->from), d->to);

    return LEFT + (double)(at - d->from) / (double)(d->to - d->from) * (WIDTH - LEFT);
}

static void escape(struct buf *out, const char *text)
{
    _cleanup_free_ char *clean = str_escape(text, strlen(text), 100);

    for (const char *p = clean; *p; p++) {
        const char *entity = *p == '<' ? "&lt;"
            : *p == '>'                ? "&gt;"
            : *p == '&'                ? "&amp;"
            : *p == '"'                ? "&quot;"
                                       : NULL;

        if (entity)
            buf_puts(out, entity);
        else
            buf_append(out, p, 1);
    }
}

static void draw_box(
    struct drawing *d, const json_t *s, bool planned, int row, uint64_t from, uint64_t to)
{
    uint64_t num = json_u64_or(s, "num", 0);
    double x = x_of(d, from), w = x_of(d, to) - x;

    buf_printf(&d->out,
        "<rect x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\" fill=\"hsl(%u,60%%,%s)\" "
        "stroke=\"%s\" stroke-dasharray=\"%s\" fill-opacity=\"0.8\"><title>%ju ",
        x, HEAD + row * ROW + 1, MAX_OF(w, 1.0), ROW - 2, (unsigned)(num * 137 % 360),
        planned ? "85%" : "65%", planned ? "#333" : "none", planned ? "3,2" : "none",
        (uintmax_t)num);
    escape(&d->out, json_str_or(s, "name", ""));
    buf_puts(&d->out, "</title></rect>\n");
    if (w > 30)
        buf_printf(&d->out, "<text x=\"%.1f\" y=\"%d\">%ju</text>\n", x + 3,
            HEAD + row * ROW + ROW - 4, (uintmax_t)num);
}

static void draw_session(struct drawing *d, const json_t *s, bool planned)
{
    uint64_t from = text_read_time(s, "start", d->from), to = text_read_time(s, "end", d->to);
    const json_t *place, *gpu;
    size_t i, k;

    json_array_foreach (json_object_get(s, "places"), i, place) {
        const json_t *gpus = json_object_get(place, "gpus");
        unsigned rows = 0;
        int row = row_of(d, json_str_or(place, "node", ""), &rows);

        if (row < 0)
            continue;
        json_array_foreach (gpus, k, gpu)
            if ((uint64_t)json_integer_value(gpu) + 1 < rows)
                draw_box(d, s, planned, row + 1 + (int)json_integer_value(gpu), from, to);
        if (json_array_size(gpus) == 0)
            draw_box(d, s, planned, row, from, to);
    }
}

static void draw_frame(struct drawing *d, int rows)
{
    const json_t *n;
    int row = 0;
    size_t i;

    json_array_foreach (d->nodes, i, n) {
        int y = HEAD + row * ROW;

        buf_printf(&d->out, "<line x1=\"0\" y1=\"%d\" x2=\"%d\" y2=\"%d\" stroke=\"#ccc\"/>\n", y,
            WIDTH, y);
        buf_printf(&d->out, "<text x=\"0\" y=\"%d\">", y + ROW - 4);
        escape(&d->out, json_str_or(n, "name", ""));
        buf_puts(&d->out, "</text>\n");
        row += (int)rows_of(n);
    }
    for (int t = 0; t <= TICKS; t++) {
        uint64_t at = d->from + (d->to - d->from) / TICKS * (uint64_t)t;
        char text[DURATION_TEXT_MAX];

        buf_printf(&d->out,
            "<line x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%d\" stroke=\"#eee\"/>"
            "<text x=\"%.1f\" y=\"12\" text-anchor=\"%s\">%s%s</text>\n",
            x_of(d, at), HEAD - 10, x_of(d, at), HEAD + rows * ROW, x_of(d, at),
            t == TICKS ? "end" : "start", t ? "+" : "now",
            t ? duration_format(at - d->from, text) : "");
    }
}

/* Up to the last end that is known, and a little more. */
static uint64_t horizon(const json_t *plan, uint64_t now)
{
    static const char *const lists[] = {"running", "planned"};
    uint64_t last = now + SPAN_MIN;
    const json_t *s;
    size_t i;

    for (size_t l = 0; l < ARRAY_LEN(lists); l++)
        json_array_foreach (json_object_get(plan, lists[l]), i, s) {
            last = MAX_OF(last, text_read_time(s, "start", 0));
            last = MAX_OF(last, text_read_time(s, "end", 0));
        }
    return last + (last - now) / 20;
}

char *plan_svg(const json_t *plan)
{
    struct drawing d = {.out = BUF_INIT(SVG_MAX), .nodes = json_object_get(plan, "nodes")};
    const json_t *n, *s;
    int rows = 0;
    size_t i;

    json_array_foreach (d.nodes, i, n)
        rows += (int)rows_of(n);
    d.from = text_read_time(plan, "now", clock_real_usec());
    d.to = horizon(plan, d.from);
    buf_printf(&d.out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"-5 0 %d %d\" "
        "font-family=\"sans-serif\" font-size=\"10\">\n"
        "<rect x=\"-5\" width=\"%d\" height=\"%d\" fill=\"white\"/>\n",
        WIDTH + 10, HEAD + rows * ROW + 10, WIDTH + 10, HEAD + rows * ROW + 10);
    draw_frame(&d, rows);
    json_array_foreach (json_object_get(plan, "running"), i, s)
        draw_session(&d, s, false);
    json_array_foreach (json_object_get(plan, "planned"), i, s)
        draw_session(&d, s, true);
    buf_puts(&d.out, "</svg>\n");
    return buf_take(&d.out);
}
