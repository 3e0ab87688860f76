/** A lease service, driven through the actions of examples/lease/lease.py; with `--unfenced` its storage ignores tokens. */
import { Adapter, Happened, Refused, Unsupported } from "./adapter.ts";
import type { Values } from "./adapter.ts";

/** One lease at a time, and a storage that refuses tokens older than the newest that it has seen. */
class Service {
    holder: number | null = null;
    issued = 0;
    newest = 0;
    stored = 0;
    fenced: boolean;

    constructor(fenced: boolean) {
        this.fenced = fenced;
    }

    /** The token of a new lease; 0 if another one is valid. */
    acquire(client: number): number {
        if (this.holder !== null) {
            return 0;
        }
        this.holder = client;
        return ++this.issued;
    }

    expire(): boolean {
        const ended = this.holder !== null;
        this.holder = null;
        return ended;
    }

    write(token: number): boolean {
        if (this.fenced && token < this.newest) {
            return false;
        }
        this.stored = token;
        this.newest = Math.max(this.newest, token);
        return true;
    }
}

class LeaseAdapter extends Adapter {
    fenced: boolean;
    service = new Service(true);
    tokens = new Map<number, number>();

    constructor(fenced: boolean) {
        super();
        this.fenced = fenced;
    }

    reset(): void {
        this.service = new Service(this.fenced);
        this.tokens = new Map();
    }

    act(action: string, args: Values): Happened | void {
        const client = args.client as number;
        switch (action) {
            case "grant": {
                const token = this.service.acquire(client);
                if (!token) {
                    throw new Refused("another client has the lease");
                }
                this.tokens.set(client, token);
                return;
            }
            case "expire":
                if (!this.service.expire()) {
                    throw new Refused("there is no lease");
                }
                return;
            case "write":
            case "refuse":
                if (this.tokens.get(client) !== args.token) {
                    throw new Unsupported("a client has no other token than its own");
                }
                return new Happened(this.service.write(args.token as number) ? "write" : "refuse", args);
            default:
                throw new Unsupported(action);
        }
    }

    observe(): Values {
        const { holder, issued, stored, newest } = this.service;
        return { holder, issued, stored, newest };
    }
}

new LeaseAdapter(!process.argv.includes("--unfenced")).serve();
