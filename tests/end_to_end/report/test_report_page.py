"""What the pages of a report show, and that nothing in results can break out of them."""

import json
from dataclasses import replace
from random import Random

import pytest
import report_material as material
from report_material import wait_for

from harness.domain import CounterReport, KernelCounters


def texts(page, selector):
    return [text.strip() for text in page.locator(selector).all_text_contents()]


def follow(page, selector, address):
    page.locator(selector).first.click()
    wait_for(page, address)


def test_the_overview_ranks_the_models_of_one_section(visit):
    page = visit("/")
    assert texts(page, "#leaderboard tbody td:nth-child(2)") == ["model-b plain", "model-a plain, 2 turns"]
    assert "core, full workload: cpp on cpu against eager" in page.locator("#section").inner_text()
    assert page.locator(".plot svg").count() >= 4
    assert page.locator(".heat td").count() == 6


@pytest.mark.slow
def test_the_leaderboard_is_filtered_and_sorted(open_page, honest):
    page = open_page(honest)
    page.keyboard.press("/")
    page.keyboard.type("MODEL-A")
    assert texts(page, "#leaderboard tbody td:nth-child(2)") == ["model-a plain, 2 turns"]
    page.locator("#leaderboard input").fill("")
    page.locator("#leaderboard button[data-column=model]").click()
    assert texts(page, "#leaderboard tbody td:nth-child(2)") == ["model-a plain, 2 turns", "model-b plain"]
    assert page.locator("#leaderboard th[aria-sort=ascending]").inner_text().startswith("model")


@pytest.mark.slow
def test_an_emulated_section_shows_correctness_and_no_time(open_page, honest):
    page = open_page(honest)
    page.locator("#section").select_option(label="core, full workload: cuda emulated, correctness only")
    page.wait_for_function("() => location.hash.includes('section')")
    assert "correctness only, no times" in page.locator("main").inner_text()
    assert texts(page, ".heat td") == ["✓"]
    assert page.locator("#leaderboard button[data-column=speedup]").count() == 0


def test_evaluations_are_filtered_sorted_and_linked(visit):
    page = visit("/evaluations")
    assert len(texts(page, "tr.opens")) == 7
    page.locator("th button[data-column=speedup]").click()
    wait_for(page, "#/evaluations?sort=-speedup")
    assert texts(page, "tr.opens td:first-child") == ["2", "5", "3", "1", "4", "6", "7"]
    page.keyboard.press("/")
    page.keyboard.type("model:model-a speedup>0.1")
    page.wait_for_function("() => document.querySelectorAll('tr.opens').length === 2")
    assert texts(page, "tr.opens td:first-child") == ["2", "3"]
    assert page.evaluate("document.activeElement.type") == "search"
    page.reload()
    page.wait_for_selector("tr.opens")
    assert texts(page, "tr.opens td:first-child") == ["2", "3"]


def test_a_choice_filters_by_the_whole_name(visit):
    page = visit("/evaluations")
    page.locator("select[data-filter=outcome]").select_option("correct")
    wait_for(page, "#/evaluations?outcome=correct")
    assert texts(page, "tr.opens td:first-child") == ["2", "3", "5", "7"]
    assert page.locator("[role=status]").inner_text() == "4 of 7 evaluations"


@pytest.mark.slow
def test_rows_are_walked_and_opened_with_the_keyboard(open_page, honest):
    page = open_page(honest, "/evaluations")
    for key in ("j", "j", "k", "j"):
        page.keyboard.press(key)
    page.keyboard.press("Enter")
    wait_for(page, "#/candidate/2")
    page.keyboard.press("j")
    wait_for(page, "#/candidate/3")
    page.keyboard.press("u")
    wait_for(page, "#/evaluations")
    page.keyboard.press("?")
    assert page.locator("dialog").is_visible()


def test_a_link_of_the_heat_map_leads_to_the_candidate(visit):
    page = visit("/")
    follow(page, ".heat tbody tr:has-text('conv') td >> nth=0 >> a", "#/candidate/6")
    assert "3 of 64 wrong" in page.locator(".told").inner_text()


def test_a_candidate_shows_source_reference_samples_and_answer(visit):
    page = visit("/candidate/2")
    main = page.locator("main")
    assert "2.00x as fast as eager" in main.inner_text()
    assert "# turn 1" in page.locator(".sources .source").nth(0).inner_text()
    assert "x.softmax(-1)" in page.locator(".sources .source").nth(1).inner_text()
    assert page.locator("figure .plot svg").count() == 2
    assert page.locator("pre.long").all_text_contents() == ["Make it fast.", "I think.", "turn 1"]
    assert "100 in, 900 out" in main.inner_text()
    assert "123456" in main.inner_text()


@pytest.mark.slow
def test_the_cases_of_a_candidate_are_listed_with_the_generalisation_gap(open_page, write_report):
    page = open_page(write_report(material.store_cases), "/candidate/1")
    rows = [text.split("\t") for text in page.locator("#cases tbody tr").all_inner_texts()]
    assert [[*row[:3], row[3][:4]] for row in rows] == [
        ["tall", "rows=99", "correct", "4.00"],
        ["<b>wide", "rows=3", "correct", "1.00"],
        ["secret (secret)", "rows=57", "correct", "0.50"],
    ]
    main = page.locator("main").inner_text()
    assert "geometric mean of 2 cases; the worst is <b>wide, 1.00x" in main
    assert "generalisation gap 4.00" in main.lower()
    page = open_page(write_report(material.store_cases), "/evaluations")
    assert "worst case" in texts(page, "thead th")[5]


def test_the_closed_gap_stands_beside_the_speedup(visit):
    page = visit("/evaluations")
    at = texts(page, "thead th").index("gap closed")
    assert "speedup" in texts(page, "thead th")[at - 1]
    assert "55.6%" in texts(page, f"tbody td:nth-child({at + 1})")


@pytest.fixture(scope="module")
def measured(write_report):
    """A report of one evaluation, whose whole calls were timed and whose kernel was counted."""
    metrics = (("gpu__time_duration.sum", 12_500.0), ("lts__t_sector_hit_rate.pct", 33.3))
    kernel = KernelCounters(kernel="<b>add", grid="(64, 1, 1)", block="(256, 1, 1)", launches=3, metrics=metrics)
    counters = CounterReport(kernels=(kernel,), note="ncu was ended after 18 s")
    made = material.make_evaluation("softmax", "correct", 1.2, counters=counters)
    timing = replace(made.timing, clock="device", baseline_call_us=150.0, candidate_call_us=100.0)
    return write_report(lambda store, generated: store.record(replace(made, timing=timing)))


def test_whole_calls_stand_beside_device_time(open_page, measured):
    page = open_page(measured, "/evaluations")
    at = texts(page, "thead th").index("whole calls")
    assert [text[:4] for text in texts(page, f"tbody td:nth-child({at + 1})")] == ["1.50"]
    follow(page, "tr.opens a", "#/candidate/1")
    assert "Whole calls, host work included: 150 us (eager) and 100 us, 1.50x" in page.locator("main").inner_text()


def test_hardware_counters_stand_by_kernel_in_the_time_attribution(open_page, measured):
    page = open_page(measured, "/candidate/1")
    page.locator("summary", has_text="<b>add: grid (64, 1, 1), block (256, 1, 1), the longest of 3 launches").click()
    card = page.locator(".card", has_text="Hardware counters").inner_text()
    assert "12.5 us" in card and "33.3 %" in card and "ncu was ended after 18 s" in card


def test_changes_of_a_turn_are_shown_as_a_diff(visit):
    page = visit("/candidate/2")
    assert texts(page, "#difference .removed") == ["-         return x  # turn 0"]
    assert texts(page, "#difference .added") == ["+         return x  # turn 1"]
    follow(page, ".turns a", "#/candidate/1")


@pytest.mark.slow
def test_report_shows_turns_as_a_tree_with_curves_of_speedup(open_page, write_report):
    page = open_page(write_report(material.store_search), "/candidate/5")
    rows = [texts(row, "td") for row in page.locator("#turns tbody tr").all()]
    assert [" | ".join(row).replace(chr(0xD7), "x") for row in rows[1:]] == [
        "└ 1 | correct | 1.00x | [0.95, 1.05] |  | 1.00x | 2,000",
        "└ 2 | correct | 2.00x | [1.90, 2.10] | 1: 2.00x | 2.00x | 3,000",
        "└ 4 and 3 | correct | 3.00x | [2.85, 3.15] | 2: 1.50x | 3.00x | 5,000",
        "└ 3 | correct | 1.60x | [1.52, 1.68] |  | 2.00x | 4,000",
    ]
    labels = [svg.get_attribute("aria-label") for svg in page.locator(".curve svg").all()]
    assert labels == ["Best speedup over turn", "Best speedup over tokens"]
    assert "turn 2" in page.locator("#difference summary").inner_text(), "the parent, not the turn before"


def count_common(first, second):
    """The length of the longest common subsequence."""
    row = [0] * (len(second) + 1)
    for line in first:
        row = [0, *accumulate_common(row, line, second)]
    return row[-1]


def accumulate_common(above, line, second):
    best = 0
    for position, other in enumerate(second):
        best = above[position] + 1 if line == other else max(best, above[position + 1])
        yield best


def test_differences_are_true_and_as_short_as_can_be(visit):
    source = Random(0)
    pairs = [[source.choices("abc", k=source.randrange(9)) for _ in range(2)] for _ in range(500)]
    page = visit("/candidate/2")
    found = page.evaluate("pairs => pairs.map(([before, after]) => diffLines(before, after))", pairs)
    for (before, after), steps in zip(pairs, found, strict=True):
        assert [line for kind, line in steps if kind != "+"] == before
        assert [line for kind, line in steps if kind != "-"] == after
        assert sum(kind == " " for kind, _ in steps) == count_common(before, after)


def test_colours_change_no_character_of_a_source(visit):
    source = Random(0)
    parts = [
        '"',
        "'",
        '"""',
        "\\",
        "#",
        "//",
        "/*",
        "*/",
        "\n",
        "{",
        ";",
        "def f",
        "int ",
        "1.5e3",
        "@x",
        "é",
        "\u2028",
    ]
    texts = ["".join(source.choices(parts, k=12)) for _ in range(500)]
    page = visit("/candidate/2")
    lines = page.evaluate("texts => texts.map(text => colourSource(text))", texts)
    assert ["\n".join("".join(part for _, part in line) for line in coloured) for coloured in lines] == texts


def test_a_finding_marks_its_line(visit):
    page = visit("/candidate/1")
    assert "return a + missing;" in page.locator(".source .marked").inner_text()
    assert page.locator(".source .marked").get_attribute("id") == "line-4"
    page.locator("a.to-line").click()
    assert page.evaluate("location.hash") == "#/candidate/1"


def test_hostile_texts_are_shown_and_nothing_of_them_runs(open_page, write_report):
    report = write_report(material.store_hostile, title=material.HOSTILE)
    page = open_page(report)
    for address in ("/", "/evaluations", "/candidate/1", "/candidate/2"):
        page.goto(f"{report.as_uri()}#{address}")
        wait_for(page, f"#{address}")
        page.wait_for_timeout(100)
        assert page.locator("main img, main script, main svg[onload]").count() == 0
        assert "</script><script>alert(1)</script>" in page.locator("main").inner_text()
    assert "\\u202e\\x1b[2J" in page.locator(".source").first.inner_text()


def test_a_script_that_got_in_all_the_same_would_not_run(browser, honest):
    from playwright.sync_api import Error

    page = browser.new_page()
    page.goto(honest.as_uri())
    page.evaluate(
        "() => { const script = document.createElement('script'); script.textContent = 'window.ran = true';"
        " document.body.append(script); }"
    )
    assert page.evaluate("() => window.ran === undefined")
    with pytest.raises(Error, match=r"Content Security Policy|Failed to fetch"):
        page.evaluate("() => fetch('data:,1')")
    page.close()


@pytest.mark.slow
def test_dark_mode_follows_the_system_and_can_be_turned(open_page, honest):
    page = open_page(honest, color_scheme="dark")
    ground = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(ground) == "rgb(21, 23, 26)"
    page.keyboard.press("d")
    assert page.evaluate(ground) == "rgb(246, 246, 243)"
    page.reload()
    page.wait_for_selector("#main[data-ready]")
    assert page.evaluate(ground) == "rgb(246, 246, 243)"


@pytest.mark.parametrize("address", ["/", "/evaluations", "/candidate/2"])
@pytest.mark.quick(1)
def test_no_page_is_wider_than_its_screen(visit, address):
    page = visit(address)
    for width in (390, 1280):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.slow
def test_on_paper_everything_is_unfolded_and_light(open_page, honest):
    page = open_page(honest, "/candidate/2", color_scheme="dark")
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("details:not([open])").count() == 0
    assert page.locator("header nav").is_hidden()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"


@pytest.mark.slow
def test_programs_given_as_files_are_listed_on_the_overview(open_page, write_report):
    single = material.make_evaluation("softmax", "correct", 1.2, run="file", prompt="-")
    page = open_page(write_report(lambda store, generated: store.record(single)))
    assert "Programs given as files" in page.locator("main").inner_text()
    page.get_by_role("cell", name="softmax").click()
    wait_for(page, "#/candidate/1")


@pytest.mark.slow
def test_one_evaluation_is_enough_for_every_page(open_page, write_report):
    report = write_report(lambda store, generated: store.record(material.make_evaluation("softmax", "correct", 1.2)))
    page = open_page(report)
    assert "100.0%" in page.locator("main").inner_text()
    page.goto(f"{report.as_uri()}#/candidate/1")
    wait_for(page, "#/candidate/1")
    assert "The files of this run were not found" in page.locator("main").inner_text()


def test_an_id_that_is_not_in_the_report_says_so(visit):
    assert "No evaluation 99 in this report" in visit("/candidate/99").locator("main").inner_text()


@pytest.mark.slow
def test_report_names_what_it_omits_for_size(open_page, write_report):
    report = write_report(material.store_honest, max_bytes=1)
    text = open_page(report, "/candidate/2").locator("main").inner_text()
    assert "omitted to limit the file size" in text
    assert "harness show 2" in text


def test_a_captured_model_is_shown_with_what_its_kernels_brought(write_report, open_page, tmp_path):
    group = {
        "kind": "AddNorm", "calls": 13, "share": 0.13, "time_us": 151.0, "peak_fraction": 0.1, "gain_limit": 1.13,
        "bound": "memory", "problem": "add_norm", "reason": "", "paths": ["norm"],
    }  # fmt: skip
    gain = {"gain": 1.139, "low": 1.137, "high": 1.141, "before_us": 15553.0, "after_us": 13655.0}
    kernel = {"problem": "add_norm", "predicted": 1.131, "in_model": gain, "reason": ""}
    applied = {"kernels": [kernel], "predicted": 1.131, "tokens": 32, "asked_tokens": 32, "losses": [[2.0, 2.5]]}
    applied["modes"] = {"eager": gain, "graph": material.HOSTILE}
    facts = {"model": material.HOSTILE, "hardware": "NVIDIA H200", "device": "cuda:0", "wall_us": 15553.0}
    facts["groups"] = [group, group | {"kind": "Linear", "problem": "", "reason": material.HOSTILE}]
    folder = tmp_path / "captured/net"
    folder.mkdir(parents=True)
    (folder / "capture.json").write_text(json.dumps(facts))
    (folder / "applied.json").write_text(json.dumps(applied))

    def fill(store, generated):
        store.record(material.make_evaluation("add_norm", speedup=8.8, suite="net"), material.SOURCE)

    page = open_page(write_report(fill, captured_dir=tmp_path / "captured"))
    modules, modes = (table.inner_text().replace("\n", " ") for table in page.locator("section.card table").all()[:2])
    assert [word in modules for word in ("13.0%", "1 of 1", "8.80", "1.131", "1.139", "applied")] == [True] * 6
    assert "15.6 ms" in modes and "not measured: </script>" in modes
    assert "Losses of 1 step are off by 0.5 at most." in page.locator("section.card").first.inner_text()


def test_each_tile_names_the_model_that_is_best_in_it(write_report, open_page):
    def fill(store, generated):
        for model, problem, speedup in (("fast", "add", 3.0), ("right", "add", 1.1), ("right", "mul", 1.2)):
            store.record(material.make_evaluation(problem, speedup=speedup, model=model), material.SOURCE)
        store.record(material.make_evaluation("mul", "wrong_value", model="fast"), material.SOURCE)

    tiles = open_page(write_report(fill)).locator(".tile").all_inner_texts()
    correct, _, speedup, _ = (tile.split("\n") for tile in tiles)
    assert (correct[0], correct[-1]) == ("100.0%", "right")
    assert (speedup[0][:4], speedup[-1]) == ("3.00", "1 kernel of fast")
