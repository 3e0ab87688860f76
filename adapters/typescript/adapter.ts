/**
 * An adapter for `streamproof drive`, without dependencies: copy this file, extend the class, and call `serve`.
 *
 * The messages are described in docs/how-to-drive.md. What the implementation prints with console.log goes to standard error.
 * Node 22.18 and later runs it as it is; others need `tsc --rewriteRelativeImportExtensions`.
 */
import { createInterface } from "node:readline";

export type Value = null | boolean | number | string | Value[] | { [name: string]: Value };
export type Values = { [name: string]: Value };

/** The implementation does not do the action now, and nothing has changed. */
export class Refused extends Error {}

/** The adapter cannot make this call here, and nothing has changed. */
export class Unsupported extends Error {}

/** What happened in place of the call; what is absent is as asked for, or unknown. */
export class Happened {
    readonly fields: { event?: string; args?: Values; picks?: Values; state?: Values; process?: string };

    constructor(event?: string, args?: Values, more: { picks?: Values; state?: Values; process?: string } = {}) {
        this.fields = { event, args, ...more };
    }
}

type Done = Values | Happened | void;

/** Base of adapters: `reset`, `act` and `observe` may also return a promise. */
export abstract class Adapter {
    /** Actions that the implementation takes by its own decision: it may refuse one that is possible. */
    own: string[] = [];
    /** Actions that the implementation takes and the adapter does not report. */
    hidden: string[] = [];
    /** Actions that cannot happen here; they are never asked for. */
    unsupported: string[] = [];

    /** Begins again in an initial state of the model; may return values of it by variable. */
    abstract reset(parameters: Values, seed: number): Values | void | Promise<Values | void>;

    /** Does an action; may return values after it, or a `Happened`. Throws `Refused` or `Unsupported`. */
    abstract act(action: string, args: Values, picks: Values): Done | Promise<Done>;

    /** Values by variable, any part of the state; `of` are the variables wanted, undefined: all. */
    observe(_of?: string[]): Values | Promise<Values> {
        return {};
    }

    private held: object[] | undefined;

    /** Reports an action that happened without being asked for, at any time; during `reset`, the first ones after it. */
    event(event: string, args?: Values, more: { state?: Values; process?: string } = {}): void {
        const message = { event, args, ...more };
        this.held ? this.held.push(message) : this.write(message);
    }

    /** Answers the calls of standard input on standard output, until `quit` or the end of input. */
    async serve(): Promise<void> {
        console.log = console.info = console.error;
        for await (const line of createInterface({ input: process.stdin })) {
            const call = JSON.parse(line);
            if (call.call === "quit") {
                process.exit(0);
            }
            this.held = call.call === "reset" ? [] : undefined;
            const answer = await this.answer(call);
            try {
                this.write({ id: call.id, ...answer });
            } catch (error) {
                this.write({ id: call.id, error: String(error) });
            }
            const events = this.held ?? [];
            this.held = undefined;
            events.forEach((event) => this.write(event));
        }
    }

    private async answer(call: any): Promise<object> {
        try {
            if (call.call === "reset") {
                const state = await this.reset(call.parameters, call.seed);
                const { own, hidden, unsupported } = this;
                return { ready: true, own, hidden, unsupported, ...(state ? { state } : {}) };
            }
            if (call.call === "do") {
                const done = await this.act(call.action, call.args, call.picks ?? {});
                return { accepted: true, ...(done instanceof Happened ? done.fields : done ? { state: done } : {}) };
            }
            return { state: await this.observe(call.of) };
        } catch (error) {
            if (error instanceof Refused) {
                return { accepted: false, because: error.message };
            }
            if (error instanceof Unsupported) {
                return { unsupported: error.message };
            }
            console.error(error);
            return { error: String(error) };
        }
    }

    private write(message: object): void {
        process.stdout.write(JSON.stringify(message, plain) + "\n");
    }
}

/** A value as JSON has it, with the entries of a Map and the elements of a Set; throws for what JSON would change silently. */
function plain(name: string, value: unknown): unknown {
    if (typeof value === "number" && !Number.isSafeInteger(value)) {
        throw new Error(`${name} is ${value}, which is no safe integer`);
    }
    if (["bigint", "function", "symbol"].includes(typeof value)) {
        throw new Error(`${name} is a ${typeof value}, which JSON does not have`);
    }
    return value instanceof Map ? Object.fromEntries(value) : value instanceof Set ? [...value] : value;
}
