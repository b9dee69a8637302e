/* SPDX-License-Identifier: MIT */
/* Curves as SVG: two series, axes that begin at nothing, names at the ends of the lines. */
#include <math.h>
#include <stdio.h>

#include "bench.h"

#define WIDTH 720
#define HEIGHT 300
#define LEFT 56
#define RIGHT 110
#define TOP 44
#define BOTTOM 48

#define INK "#1f2937"
#define FAINT "#6b7280"
#define GRID "#e5e7eb"

struct frame {
        FILE *file;
        const struct plot *plot;
        double x_low, x_high, y_high;
};

static double x_of(const struct frame *frame, double value)
{
        double low = frame->x_low, high = frame->x_high;

        if (frame->plot->log_x) {
                low = log10(low);
                high = log10(high);
                value = log10(value);
        }
        return LEFT + (value - low) / (high - low) * (WIDTH - LEFT - RIGHT);
}

static double y_of(const struct frame *frame, double value)
{
        return HEIGHT - BOTTOM - value / frame->y_high * (HEIGHT - TOP - BOTTOM);
}

/* 1, 2 or 5 times a power of ten: about `n` of it fit into `range`. */
static double round_step(double range, int n)
{
        double power = pow(10, floor(log10(range / n))), left = range / n / power;

        return power * (left <= 1 ? 1 : left <= 2 ? 2 : left <= 5 ? 5 : 10);
}

static void measure(struct frame *frame)
{
        double most = 0;

        frame->x_low = frame->plot->log_x ? INFINITY : 0;
        frame->x_high = 0;
        for (size_t i = 0; i < ARRAY_SIZE(frame->plot->series); i++) {
                const struct series *series = &frame->plot->series[i];

                for (size_t j = 0; j < series->n; j++) {
                        frame->x_low = fmin(frame->x_low, series->x[j]);
                        frame->x_high = fmax(frame->x_high, series->x[j]);
                        most = fmax(most, series->y[j]);
                }
        }
        if (frame->plot->log_x && frame->x_high <= frame->x_low)
                frame->x_high = frame->x_low * 10;
        /* Room above the highest point: what is flat should not look like a ceiling. */
        frame->y_high = ceil(most * 1.3 / round_step(most * 1.3, 5)) * round_step(most * 1.3, 5);
}

static void label(const struct frame *frame, double x, double y, const char *anchor,
                  const char *colour, const char *text)
{
        fprintf(frame->file,
                "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" fill=\"%s\">%s</text>\n", x, y,
                anchor, colour, text);
}

static void number(char *text, size_t size, double value)
{
        int whole = (int)value;

        if (value >= 1000 && value == whole)
                snprintf(text, size, "%d&#8201;%03d", whole / 1000, whole % 1000);
        else
                snprintf(text, size, "%g", value);
}

static void draw_y_axis(const struct frame *frame)
{
        double step = round_step(frame->y_high, 5);
        char text[64];

        for (int i = 0; i * step <= frame->y_high * 1.001; i++) {
                double y = y_of(frame, i * step);

                fprintf(frame->file,
                        "<line x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\" stroke=\"%s\"/>\n", LEFT,
                        y, WIDTH - RIGHT, y, i == 0 ? FAINT : GRID);
                number(text, sizeof(text), i * step);
                label(frame, LEFT - 8, y + 4, "end", FAINT, text);
        }
        label(frame, LEFT - 8, TOP - 12, "start", FAINT, frame->plot->y_label);
}

static void draw_tick(const struct frame *frame, double value)
{
        double x = x_of(frame, value);
        char text[64];

        fprintf(frame->file, "<line x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%d\" stroke=\"%s\"/>\n",
                x, HEIGHT - BOTTOM, x, HEIGHT - BOTTOM + 5, FAINT);
        number(text, sizeof(text), value);
        label(frame, x, HEIGHT - BOTTOM + 20, "middle", FAINT, text);
}

static void draw_x_axis(const struct frame *frame)
{
        const struct series *series = &frame->plot->series[0];
        double step = round_step(frame->x_high, 5);

        if (frame->plot->log_x)
                for (size_t i = 0; i < series->n; i++)
                        draw_tick(frame, series->x[i]);
        else
                for (int i = 0; i * step <= frame->x_high * 1.02; i++)
                        draw_tick(frame, i * step);
        label(frame, (LEFT + WIDTH - RIGHT) / 2.0, HEIGHT - 10, "middle", FAINT,
              frame->plot->x_label);
}

static void draw_series(const struct frame *frame, const struct series *series)
{
        size_t last = series->n - 1;

        fprintf(frame->file,
                "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"2\" "
                "stroke-linejoin=\"round\" points=\"",
                series->colour);
        for (size_t i = 0; i < series->n; i++)
                fprintf(frame->file, "%s%.1f,%.1f", i ? " " : "", x_of(frame, series->x[i]),
                        y_of(frame, series->y[i]));
        fprintf(frame->file, "\"/>\n");
        for (size_t i = 0; frame->plot->dots && i < series->n; i++)
                fprintf(frame->file, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3.5\" fill=\"%s\"/>\n",
                        x_of(frame, series->x[i]), y_of(frame, series->y[i]), series->colour);
        label(frame, x_of(frame, series->x[last]) + 10, y_of(frame, series->y[last]) + 4, "start",
              series->colour, series->name);
}

void plot_write(const struct plot *plot, const char *name)
{
        struct frame frame = { .plot = plot };
        char path[PATH_MAX];

        snprintf(path, sizeof(path), "%s/%s.svg", options.results, name);
        frame.file = fopen(path, "we");
        if (!frame.file)
                die(path);
        measure(&frame);
        fprintf(frame.file,
                "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
                "viewBox=\"0 0 %d %d\" font-family=\"system-ui, sans-serif\" font-size=\"12\">\n"
                "<rect width=\"%d\" height=\"%d\" fill=\"#ffffff\"/>\n"
                "<text x=\"%d\" y=\"18\" font-size=\"14\" font-weight=\"600\" "
                "fill=\"%s\">%s</text>\n",
                WIDTH, HEIGHT, WIDTH, HEIGHT, WIDTH, HEIGHT, LEFT - 8, INK, plot->title);
        draw_y_axis(&frame);
        draw_x_axis(&frame);
        for (size_t i = 0; i < ARRAY_SIZE(plot->series); i++)
                if (plot->series[i].n > 0)
                        draw_series(&frame, &plot->series[i]);
        fprintf(frame.file, "</svg>\n");
        if (fclose(frame.file) != 0)
                die(path);
        printf("  drawn: %s\n", path);
}
