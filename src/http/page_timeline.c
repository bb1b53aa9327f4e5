/* SPDX-License-Identifier: MIT */
/*
 * The sessions of a run as a picture: those that have ended lately, those that
 * run, and when they are expected to end. Sessions are in lanes, each in the
 * first one that is free when it begins.
 */
#include "base/duration.h"
#include "base/mem.h"
#include "base/plain.h"
#include "base/xml.h"
#include "http/page.h"

#include <stdlib.h>
#include <string.h>

enum {
    BARS_MAX = 400,
    LANES_MAX = 24,
    WIDTH = 1060,
    LANE = 22, /* distance of lanes */
    BAR = 18,
    AXIS = 20,
    COLOURS = 8,
    NAME_PX = 7, /* width of a character */
};

/* A session. */
struct bar {
    int64_t from_ns; /* wall clock */
    int64_t to_ns;
    int64_t expected_ns; /* end; 0: it has ended */
    uint32_t task;
    uint32_t lane;
    bool bad;
};

struct picture {
    const struct page *page;
    struct bar *bars;
    uint32_t count;
    uint32_t lanes;
    int64_t now_ns;
    int64_t from_ns;
    int64_t to_ns;
};

/* --- selection ---------------------------------------------------------- */

static void add_ended(struct picture *picture)
{
    const struct source *source = picture->page->source;
    uint32_t tasks = picture->page->run->task_count;
    for (uint64_t number = source_last(source);
         number > 0 && number >= source_first(source) &&
         picture->count < BARS_MAX;
         number--) {
        const struct source_event *event = source_event(source, number);
        if (event != NULL && event->ended && event->task < tasks &&
            event->run == picture->page->run->number) {
            picture->bars[picture->count++] = (struct bar){
                .from_ns = event->wall_ns - event->took_ns,
                .to_ns = event->wall_ns,
                .task = event->task,
                .bad = event->bad,
            };
        }
    }
}

static void add_running(struct picture *picture)
{
    const struct page *page = picture->page;
    const struct plan *plan =
        engine_plan(page->glance->view.engine, page->model->shown);
    for (uint32_t ix = 0;
         ix < page->model->slot_count && picture->count < BARS_MAX;
         ix++) {
        const struct model_slot *slot = &page->model->slots[ix];
        uint32_t task = plan_find_task(plan, slot->task);
        if (task == PLAN_NONE || slot->since_ns <= 0) {
            continue;
        }
        picture->bars[picture->count++] = (struct bar){
            .from_ns = slot->since_ns,
            .to_ns = picture->now_ns,
            .expected_ns = slot->since_ns + slot->expected_ns,
            .task = task,
        };
    }
}

/* Choose the time to show: some durations of a session back, and ahead up to
 * the expected ends. */
static void choose_range(struct picture *picture)
{
    int64_t longest_ns = MINUTE_NS;
    int64_t first_ns = picture->now_ns;
    int64_t last_ns = picture->now_ns;
    for (uint32_t ix = 0; ix < picture->count; ix++) {
        const struct bar *bar = &picture->bars[ix];
        int64_t took_ns = bar->to_ns - bar->from_ns;
        longest_ns = took_ns > longest_ns ? took_ns : longest_ns;
        first_ns = bar->from_ns < first_ns ? bar->from_ns : first_ns;
        last_ns = bar->expected_ns > last_ns ? bar->expected_ns : last_ns;
    }
    int64_t back_ns = 4 * longest_ns;
    back_ns = back_ns < 12 * HOUR_NS ? back_ns : 12 * HOUR_NS;
    picture->from_ns = first_ns > picture->now_ns - back_ns
                           ? first_ns
                           : picture->now_ns - back_ns;
    int64_t span_ns = picture->now_ns - picture->from_ns;
    int64_t ahead_ns = span_ns > MINUTE_NS ? span_ns : MINUTE_NS;
    picture->to_ns = last_ns < picture->now_ns + ahead_ns
                         ? last_ns
                         : picture->now_ns + ahead_ns;
    if (picture->to_ns - picture->from_ns < 10 * SECOND_NS) {
        picture->to_ns = picture->from_ns + 10 * SECOND_NS;
    }
}

static int compare_bars(const void *left, const void *right)
{
    const struct bar *a = left;
    const struct bar *b = right;
    if (a->from_ns != b->from_ns) {
        return a->from_ns < b->from_ns ? -1 : 1;
    }
    return (a->task > b->task) - (a->task < b->task);
}

/* Give each visible session a lane; drop the others. */
static void assign_lanes(struct picture *picture)
{
    int64_t free_ns[LANES_MAX] = {0};
    uint32_t kept = 0;
    if (picture->count > 1) {
        qsort(picture->bars,
              picture->count,
              sizeof(picture->bars[0]),
              compare_bars);
    }
    for (uint32_t ix = 0; ix < picture->count; ix++) {
        struct bar bar = picture->bars[ix];
        while (bar.lane < LANES_MAX && free_ns[bar.lane] > bar.from_ns) {
            bar.lane++;
        }
        if (bar.lane < LANES_MAX && bar.to_ns > picture->from_ns) {
            free_ns[bar.lane] = bar.expected_ns > 0 ? INT64_MAX : bar.to_ns;
            picture->lanes =
                bar.lane >= picture->lanes ? bar.lane + 1 : picture->lanes;
            picture->bars[kept++] = bar;
        }
    }
    picture->count = kept;
}

/* --- drawing ------------------------------------------------------------ */

static int32_t x_of(const struct picture *picture, int64_t at_ns)
{
    int64_t whole_ns = picture->to_ns - picture->from_ns;
    int64_t part_ns = at_ns - picture->from_ns;
    part_ns = part_ns < 0 ? 0 : part_ns > whole_ns ? whole_ns : part_ns;
    return (int32_t)((double)part_ns * WIDTH / (double)whole_ns);
}

static void add_rect(struct strbuf *out,
                     const char *class_name,
                     int32_t x1,
                     int32_t x2,
                     uint32_t lane)
{
    strbuf_addf(out,
                "<rect class=\"%s\" x=\"%d\" y=\"%u\" width=\"%d\" "
                "height=\"%d\" rx=\"3\"/>",
                class_name,
                x1,
                lane * LANE + AXIS,
                x2 > x1 + 1 ? x2 - x1 : 2,
                BAR);
}

/* Append the name of a bar, if it fits. */
static void add_name(struct strbuf *out,
                     const struct bar *bar,
                     const char *id,
                     int32_t x1,
                     int32_t x2)
{
    struct strbuf name = {0};
    if (x2 - x1 > 4 * NAME_PX) {
        plain_add_cut(&name, id, (uint32_t)((x2 - x1) / NAME_PX));
        strbuf_addf(out,
                    "<text x=\"%d\" y=\"%u\">",
                    x1 + 4,
                    bar->lane * LANE + AXIS + BAR - 5);
        xml_add(out, strbuf_text(&name));
        strbuf_adds(out, "</text>");
    }
    strbuf_release(&name);
}

static void add_bar(struct strbuf *out,
                    const struct picture *picture,
                    const struct bar *bar)
{
    const struct page *page = picture->page;
    const struct plan *plan =
        engine_plan(page->glance->view.engine, page->model->shown);
    const struct plan_task *task = &plan->tasks[bar->task];
    int32_t x1 = x_of(picture, bar->from_ns);
    int32_t x2 = x_of(picture, bar->to_ns);
    struct strbuf class_name = {0};
    strbuf_addf(&class_name,
                "c%u%s",
                task->class_ix % COLOURS,
                bar->bad ? " bad-end" : "");
    strbuf_adds(out, "<a href=\"/?run=");
    page_add_escaped(out, page->run->id);
    strbuf_adds(out, "&amp;task=");
    page_add_escaped(out, task->id);
    strbuf_adds(out, "#task\"><title>");
    xml_add(out, task->id);
    strbuf_adds(out, bar->expected_ns > 0 ? ", running for " : ", took ");
    page_add_took(out, bar->from_ns, bar->to_ns);
    strbuf_adds(out, bar->bad ? ", did not succeed" : "");
    if (bar->expected_ns > 0) {
        strbuf_adds(out, ", expected until ");
        plain_add_clock(out, bar->expected_ns, PLAIN_MINUTES);
    }
    strbuf_adds(out, "</title>");
    if (bar->expected_ns > bar->to_ns) {
        add_rect(out, "more", x2, x_of(picture, bar->expected_ns), bar->lane);
    }
    add_rect(out, strbuf_text(&class_name), x1, x2, bar->lane);
    add_name(out, bar, task->id, x1, x2);
    strbuf_adds(out, "</a>\n");
    strbuf_release(&class_name);
}

/* Append a time of the axis. */
static void add_tick(struct strbuf *out,
                     const struct picture *picture,
                     int64_t at_ns,
                     const char *anchor)
{
    strbuf_addf(out,
                "<text class=\"soft\" x=\"%d\" y=\"12\" text-anchor=\"%s\">",
                x_of(picture, at_ns),
                anchor);
    plain_add_clock(out,
                    at_ns,
                    picture->to_ns - picture->from_ns < HOUR_NS
                        ? PLAIN_SECONDS
                        : PLAIN_MINUTES);
    strbuf_adds(out, "</text>");
}

static void draw(struct strbuf *out, const struct picture *picture)
{
    int32_t height = (int32_t)picture->lanes * LANE + AXIS;
    int32_t now_x = x_of(picture, picture->now_ns);
    strbuf_addf(out,
                "<div class=\"scroll\" tabindex=\"0\" role=\"group\" "
                "aria-label=\"Timeline\"><svg class=\"timeline\" "
                "role=\"group\" aria-label=\"Sessions over time\" width=\"%d\" "
                "height=\"%d\" viewBox=\"0 0 %d %d\">\n",
                WIDTH,
                height,
                WIDTH,
                height);
    add_tick(out, picture, picture->from_ns, "start");
    if (now_x > WIDTH / 6 && now_x < WIDTH * 5 / 6) {
        add_tick(out, picture, picture->now_ns, "middle");
    }
    add_tick(out, picture, picture->to_ns, "end");
    for (uint32_t ix = 0; ix < picture->count; ix++) {
        add_bar(out, picture, &picture->bars[ix]);
    }
    strbuf_addf(out,
                "<path class=\"now\" d=\"M%d %dV%d\"/></svg></div>",
                now_x,
                AXIS - 4,
                height);
}

void page_add_timeline(struct strbuf *out, const struct page *page)
{
    struct picture picture = {
        .page = page,
        .bars = mem_zalloc(BARS_MAX, sizeof(picture.bars[0])),
        .now_ns = page->glance->wall_ns,
    };
    add_running(&picture);
    add_ended(&picture);
    if (picture.count > 0) {
        choose_range(&picture);
        assign_lanes(&picture);
        draw(out, &picture);
    }
    mem_free(picture.bars);
}
