"""After Stop nothing new is shown: tokens that were held for the next frame are dropped, and made again by Continue."""

import asyncio

from tests.support.fake_platform import only


def test_no_token_is_sent_after_a_stop(new_driver, golden):
    async def story(at_call):
        driver = new_driver()
        await driver.load()
        # One frame that never ends: everything behind the first token is held.
        driver.platform.tick_s = 0.0
        script, events = driver.platform.script, driver.platform.events
        stopped_at = []

        def stop():
            driver.engine.sessions[0].mark.raise_to(2)
            stopped_at.append(len(events))

        script.act_at, script.act = script.n_counted + at_call, stop
        finished = only(await driver.generate(max_tokens=12), "finished")
        if not stopped_at:
            return len(finished["output_ids"])
        late = [event for event in events[stopped_at[0] :] if event["kind"] == "delta"]
        # The first byte of a character that never came whole is shown as such, without a token.
        assert [event["token_ids"] for event in late] in ([], [[]])
        sent = [i for event in events if event["kind"] == "delta" for i in event["token_ids"]]
        assert sent == finished["output_ids"] == golden[1][: len(sent)]
        if finished["reason"] == "abort":
            rest = only(await driver.continue_(), "finished")
            assert rest["output_ids"] == golden[1]
        return len(sent)

    lengths = {asyncio.run(story(at_call)) for at_call in range(1, 45)}
    # Stopped in the prompt; in the middle; never, because the answer was complete.
    assert lengths == {0, 1, 12}


def test_ready_means_that_no_step_is_in_flight(new_driver):
    async def story(at_call):
        driver = new_driver()
        await driver.load()
        script, device = driver.platform.script, driver.platform.devices[0]
        in_flight = []
        send = driver.platform.send

        def sending(kind, **fields):
            if fields.get("state") == "ready":
                in_flight.append(device.n_in_flight)
            send(kind, **fields)

        driver.platform.send = sending
        script.act_at, script.act = script.n_counted + at_call, lambda: driver.engine.sessions[0].mark.raise_to(2)
        assert only(await driver.generate(max_tokens=12), "finished")["reason"] == "abort"
        assert in_flight == [0]

    for at_call in range(1, 20):
        asyncio.run(story(at_call))
